"""Lines that hold more than a text: tables with tabs, and JSON objects."""

import json
from collections.abc import Callable

from resmlp_mt.errors import UserError

# The text of a line, and what puts a translation into that line.
Taken = tuple[str, Callable[[str], str]]


class Column:
    """A column of lines with tabs.

    Args:
        source: The column to translate, counted from 1.
        target: Where the translation goes: a column that is there, or the next after the last.
    """

    def __init__(self, source: int, target: int):
        self.source, self.target = source, target

    def take(self, line: str, number: int) -> Taken:
        """Find the text of a line.

        Raises:
            UserError: If the line has too few columns; names its number.
        """
        columns = line.split("\t")
        for flag, column, last in (
            ("--field", self.source, len(columns)),
            ("--into", self.target, len(columns) + 1),
        ):
            if column > last:
                raise UserError(
                    f"line {number} has {len(columns)} columns: there is no {flag} {column}"
                )

        def put(text: str) -> str:
            return "\t".join([*columns[: self.target - 1], text, *columns[self.target :]])

        return columns[self.source - 1], put


class Key:
    """A field of lines that are JSON objects. The other fields stay as they are.

    Args:
        source: The name of the field to translate.
        target: Where the translation goes; the field may be new.
    """

    def __init__(self, source: str, target: str):
        self.source, self.target = source, target

    def take(self, line: str, number: int) -> Taken:
        """Find the text of a line.

        Raises:
            UserError: If the line is no JSON object, or has no text in that field; names its
                number.
        """
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"line {number} is no JSON ({error})") from None
        if not isinstance(entry, dict) or not isinstance(entry.get(self.source), str):
            raise UserError(f"line {number} has no text as --field {self.source}: {line:.60}")
        return entry[self.source], lambda text: _write(entry | {self.target: text})


def choose_field(source: str, target: str | None) -> Column | Key:
    """What `--field` and `--into` name: a number is a column, anything else a field of JSON.

    Raises:
        UserError: If they do not go together, or a column is below 1.
    """
    target = source if target is None else target
    if source.isdecimal() != target.isdecimal():
        raise UserError(f"--field {source} and --into {target}: give two columns, or two names")
    if not source.isdecimal():
        return Key(source, target)
    if min(int(source), int(target)) < 1:
        raise UserError("--field and --into count columns from 1")
    return Column(int(source), int(target))


def _write(entry: dict) -> str:
    line = json.dumps(entry, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only an escape can say
        line = json.dumps(entry)
    return line
