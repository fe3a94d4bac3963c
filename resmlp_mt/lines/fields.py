"""Lines that hold more than a text: tables with tabs, and JSON objects."""

import json
import re
from collections.abc import Callable

from resmlp_mt.errors import UserError, name_some, on_a_line

# Whole numbers may have more digits than Python makes an int of.
_DECODER = json.JSONDecoder(parse_int=float)
_BEFORE_NAME, _BEFORE_VALUE = re.compile(r'[\s,]*(?=")'), re.compile(r"\s*:\s*")

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

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays as it is.

        Raises:
            UserError: If the line has too few columns; names its place.
        """
        columns = line.split("\t")
        if len(columns) == 1 and not line.strip():
            return "", lambda _: line
        for flag, column, last in (
            ("--field", self.source, len(columns)),
            ("--into", self.target, len(columns) + 1),
        ):
            if column > last:
                raise UserError(
                    f"{place}: there is no {flag} {column}, but {len(columns)} columns; tabs part "
                    "them"
                )

        def put(text: str) -> str:
            return "\t".join([*columns[: self.target - 1], text, *columns[self.target :]])

        return columns[self.source - 1], put


class Key:
    """A field of lines that are JSON objects. The others stay as they are, to the letter.

    Args:
        source: The name of the field to translate.
        target: Where the translation goes; the field may be new.
    """

    def __init__(self, source: str, target: str):
        self.source, self.target = source, target

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays; a null gives a null.

        Raises:
            UserError: If the line is no JSON object, or has no text in that field; names its
                place.
        """
        if not line.strip():
            return "", lambda _: line
        try:
            entry = _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: no JSON ({error})") from None
        if not isinstance(entry, dict):
            raise UserError(f"{place}: no JSON object: {on_a_line(line):.60}")
        if self.source not in entry:
            others = on_a_line(name_some(list(entry))) or "none"
            raise UserError(f"{place}: there is no --field {self.source}, but {others}")
        text = entry[self.source]
        if not isinstance(text, str | None):
            raise UserError(f"{place}: --field {self.source} is no text: {on_a_line(line):.60}")
        return text or "", lambda new: self._put(line, None if text is None else new)

    def _put(self, line: str, text: str | None) -> str:
        """The line with that in the field. Numbers stay as written: floats hold not all of them."""
        places = _find_values(line)
        if self.target in places:
            start, end = places[self.target]
            return line[:start] + _write(text) + line[end:]
        end = line.rindex("}")
        return f"{line[:end].rstrip()}, {_write(self.target)}: {_write(text)}{line[end:]}"


def _find_values(line: str) -> dict[str, tuple[int, int]]:
    """Where the value of each field of a JSON object begins and ends."""
    places, at = {}, line.index("{") + 1
    while found := _BEFORE_NAME.match(line, at):
        name, at = _DECODER.raw_decode(line, found.end())
        start = _BEFORE_VALUE.match(line, at).end()
        _, at = _DECODER.raw_decode(line, start)
        places[name] = start, at
    return places


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


def _write(text: str | None) -> str:
    written = json.dumps(text, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only an escape can say
        written = json.dumps(text)
    return written
