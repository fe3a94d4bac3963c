"""Lines that hold more than a text: tables with tabs, and JSON objects."""

import json
import re
from collections.abc import Callable

from resmlp_mt.errors import UserError, name_some, on_a_line

# Whole numbers may have more digits than Python makes an int of.
_DECODER = json.JSONDecoder(parse_int=float)
_BEFORE_NAME, _BEFORE_VALUE = re.compile(r'[\s,]*(?=")'), re.compile(r"\s*:\s*")

# The text of a line, and what puts a translation, and its score, into that line.
Taken = tuple[str, Callable[..., str]]


class Column:
    """A column of lines with tabs.

    Args:
        source: The column to translate, counted from 1.
        target: Where the translation goes: a column that is there, or the next after the last.
        score: Where its score goes, if anywhere: as for `target`, once that is there.
    """

    def __init__(self, source: int, target: int, score: int | None = None):
        self.source, self.target, self.score = source, target, score

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays as it is.

        Raises:
            UserError: If the line has too few columns; names its place.
        """
        columns = line.split("\t")
        if len(columns) == 1 and not line.strip():
            return "", lambda *_: line
        for flag, column, last in (
            ("--field", self.source, len(columns)),
            ("--into", self.target, len(columns) + 1),
            ("--score-into", self.score, max(self.target, len(columns)) + 1),
        ):
            if column is not None and column > last:
                raise UserError(
                    f"{place}: there is no {flag} {column}, but {len(columns)} columns; tabs part "
                    "them"
                )

        def put(text: str, score: float = 0.0) -> str:
            row = columns.copy()
            row[self.target - 1 : self.target] = [text]
            if self.score is not None:
                row[self.score - 1 : self.score] = [f"{score:.4f}"]
            return "\t".join(row)

        return columns[self.source - 1], put


class Key:
    """A field of lines that are JSON objects. The others stay as they are, to the letter.

    "m.text" is the field "text" of the object "m", unless a field has the whole name.

    Args:
        source: The name of the field to translate.
        target: Where the translation goes; the field may be new.
        score: Where its score goes, if anywhere; the field may be new.
    """

    def __init__(self, source: str, target: str, score: str | None = None):
        self.source, self.target, self.score = source, target, score

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays; a null gives nulls.

        Raises:
            UserError: If the line is no JSON object, or has no text in that field; names its
                place.
        """
        if not line.strip():
            return "", lambda *_: line
        try:
            entry = _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            is_json = line.lstrip().startswith(("{", "["))
            advice = "" if is_json else "; a column of a table is given by its number"
            raise UserError(f"{place}: no JSON ({error}){advice}") from None
        if not isinstance(entry, dict):
            raise UserError(f"{place}: no JSON object: {on_a_line(line):.60}")
        values, _, name = _find_holder(line, self.source)
        if name not in values:
            others = [self.source.removesuffix(name) + other for other in values]
            said = name_some(others) or "none"
            raise UserError(f"{place}: there is no --field {self.source}, but {said}")
        text, _ = _DECODER.raw_decode(line, values[name][0])
        if not isinstance(text, str | None):
            raise UserError(f"{place}: --field {self.source} is no text: {on_a_line(line):.60}")

        def put(translation: str, score: float = 0.0) -> str:
            changed = _put(line, self.target, None if text is None else translation)
            if self.score is None:
                return changed
            return _put(changed, self.score, None if text is None else round(score, 4))

        return text or "", put


def _put(line: str, name: str, value: str | float | None) -> str:
    """The line with that in the field. Numbers stay as written: floats hold not all of them."""
    values, end, name = _find_holder(line, name)
    if name in values:
        start, end = values[name]
        return line[:start] + _write(value) + line[end:]
    before = line[:end].rstrip() + ", " * bool(values)
    return f"{before}{_write(name)}: {_write(value)}{line[end:]}"


def _find_holder(
    line: str, name: str, start: int = 0
) -> tuple[dict[str, tuple[int, int]], int, str]:
    """The object that has a field of this name, or would get it.

    Returns:
        Where the value of each of its fields begins and ends, where the object ends, and the name
        of the field in it.
    """
    values, at = {}, line.index("{", start) + 1
    while found := _BEFORE_NAME.match(line, at):
        key, at = _DECODER.raw_decode(line, found.end())
        begun = _BEFORE_VALUE.match(line, at).end()
        _, at = _DECODER.raw_decode(line, begun)
        values[key] = begun, at
    first, _, rest = name.partition(".")
    if rest and name not in values and first in values and line[values[first][0]] == "{":
        return _find_holder(line, rest, values[first][0])
    return values, line.index("}", at), name


def choose_field(source: str, target: str | None, score: str | None = None) -> Column | Key:
    """What `--field`, `--into` and `--score-into` name: a column by its number, or a JSON field.

    Raises:
        UserError: If they do not go together, or a column is below 1.
    """
    target = source if target is None else target
    for flag, other in ("--into", target), ("--score-into", score):
        if other is not None and other.isdecimal() != source.isdecimal():
            said = f"--field {source} and {flag} {other}"
            raise UserError(f"{said}: give two columns, or two names")
    kind, places = Key, [source, target, *[score] * (score is not None)]
    if source.isdecimal():
        kind, places = Column, list(map(int, places))
        if min(places) < 1:
            raise UserError("--field, --into and --score-into count columns from 1")
    if places[-1] in places[:-1] and score is not None:
        raise UserError(f"--score-into {score}: the text is there; give another place")
    return kind(*places)


def _write(value: str | float | None) -> str:
    written = json.dumps(value, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only an escape can say
        written = json.dumps(value)
    return written
