"""Lines that hold more than a text: tables with tabs, and JSON objects."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from resmlp_mt.errors import UserError, name_some, on_a_line

# The text of a line, and what puts a translation, and its score, into that line.
Taken = tuple[str, Callable[..., str]]


@dataclass
class Column:
    """A column of lines with tabs.

    Attributes:
        source: The column to translate, counted from 1.
        target: Where the translation goes: a column that is there, or the next after the last.
        score: Where its score goes, if anywhere: as for `target`, once that is there.
    """

    source: int
    target: int
    score: int | None = None

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays as it is.

        Raises:
            UserError: If the line has too few columns; names its place.
        """
        columns = line.split("\t")
        if not line.strip() and len(columns) == 1:
            return "", lambda *_: line
        room = {"--field": len(columns), "--into": len(columns) + 1}
        room["--score-into"] = max(self.target, len(columns)) + 1
        for (flag, last), column in zip(room.items(), vars(self).values(), strict=True):
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


@dataclass
class Key:
    """A field of lines that are JSON objects, whose other values stay.

    "m.text" is the field "text" of the object "m", unless a field has the whole name.

    Attributes:
        source: The name of the field to translate.
        target: Where the translation goes; the field may be new.
        score: Where its score goes, if anywhere; the field may be new.
    """

    source: str
    target: str
    score: str | None = None

    def take(self, line: str, place: str) -> Taken:
        """Find the text of a line. A blank line has none, and stays; a null gives nulls.

        Raises:
            UserError: If the line is no JSON object, or has no text in that field; names its
                place.
        """
        if not line.strip():
            return "", lambda *_: line
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            is_json = line.lstrip().startswith(("{", "["))
            advice = "" if is_json else "; a column of a table is given by its number"
            raise UserError(f"{place}: no JSON ({error}){advice}") from None
        if not isinstance(entry, dict):
            raise UserError(f"{place}: no JSON object: {on_a_line(line):.60}")
        holder, name = _find_holder(entry, self.source)
        if name not in holder:
            others = [self.source.removesuffix(name) + other for other in holder]
            said = name_some(others) or "none"
            raise UserError(f"{place}: there is no --field {self.source}, but {said}")
        if not isinstance(text := holder[name], str | None):
            raise UserError(f"{place}: --field {self.source} is no text: {on_a_line(line):.60}")

        def put(translation: str, score: float = 0.0) -> str:
            values = {self.target: translation}
            if self.score is not None:
                values[self.score] = round(score, 4)
            for field, value in values.items():
                inside, name = _find_holder(entry, field)
                inside[name] = None if text is None else value
            return _write(entry)

        return text or "", put


def _find_holder(entry: dict, name: str) -> tuple[dict, str]:
    """The object that has a field of this name, or would get it, and the field's name in it."""
    first, _, rest = name.partition(".")
    if rest and name not in entry and isinstance(entry.get(first), dict):
        return _find_holder(entry[first], rest)
    return entry, name


def _write(entry: dict) -> str:
    written = json.dumps(entry, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only an escape can say
        written = json.dumps(entry)
    return written


def choose_field(source: str, target: str | None, score: str | None = None) -> Column | Key:
    """The column, by its number, or JSON field of `--field`, `--into` and `--score-into`.

    Raises:
        UserError: If they do not go together, or a column is below 1.
    """
    places = [source, source if target is None else target, *[score] * (score is not None)]
    for flag, place in zip(("--into", "--score-into"), places[1:], strict=False):
        if place.isdecimal() != source.isdecimal():
            said = f"--field {source} and {flag} {place}"
            raise UserError(f"{said}: give two columns, or two names")
    kind = Key
    if source.isdecimal():
        kind, places = Column, list(map(int, places))
        if min(places) < 1:
            raise UserError("--field, --into and --score-into count columns from 1")
    if score is not None and places[2] in places[:2]:
        raise UserError(f"--score-into {score}: the text is there; give another place")
    return kind(*places)
