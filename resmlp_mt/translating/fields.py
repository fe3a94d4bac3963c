"""Lines that hold more than a text: tables with tabs, and JSON objects."""

import json
from collections.abc import Callable
from functools import partial

from resmlp_mt.errors import UserError, name_some, on_a_line

# The text of a line, and a function that puts a translation, and its score, into that line.
Taken = tuple[str, Callable[..., str]]


def choose_field(
    source: str, target: str | None, score: str | None = None
) -> Callable[[str, str], Taken]:
    """A function that takes the text from a line: take(line, place).

    Args:
        source: The place of the text: a column of lines with tabs, counted from 1, or the field of
            lines that are JSON objects, whose other values stay. "m.text" is the field "text" of
            the object "m", unless a field has the whole name.
        target: Where the translation goes: a column that is there or the next after the last, or a
            field, which may be new. None: in place of the text.
        score: Where its score goes, as for `target`, once the translation is there. None: nowhere.

    Returns:
        take(line, place) returns the text, and put(translation, score), which returns the line. A
        blank line has no text, and stays as it is; a null gives nulls. It raises a UserError that
        names `place` if the line has too few columns, is no JSON object, or has no text there.

    Raises:
        UserError: If columns and fields are mixed, `score` is at a text, or a column is below 1.
    """
    places = [source, source if target is None else target, score]
    for flag, place in zip(("--into", "--score-into"), places[1:], strict=True):
        if place is not None and place.isdecimal() != source.isdecimal():
            said = f"--field {source} and {flag} {place}"
            raise UserError(f"{said}: give two columns, or two names")
    take = _take_key
    if source.isdecimal():
        take, places = _take_column, [place and int(place) for place in places]
        if 0 in places:
            raise UserError("--field, --into and --score-into count columns from 1")
    if score is not None and places[2] in places[:2]:
        raise UserError(f"--score-into {score}: the text is there; give another place")
    return partial(take, *places)


def _take_column(source: int, target: int, beside: int | None, line: str, place: str) -> Taken:
    columns = line.split("\t")
    if not line.strip() and len(columns) == 1:
        return "", lambda *_: line
    room = {"--field": (source, len(columns)), "--into": (target, len(columns) + 1)}
    room["--score-into"] = beside or 0, max(target, len(columns)) + 1
    for flag, (column, last) in room.items():
        if column > last:
            raise UserError(f"{place}: there is no {flag} {column}, but {len(columns)} columns")

    def put(text: str, score: float = 0.0) -> str:
        row = columns.copy()
        row[target - 1 : target] = [text]
        if beside is not None:
            row[beside - 1 : beside] = [f"{score:.4f}"]
        return "\t".join(row)

    return columns[source - 1], put


def _take_key(source: str, target: str, beside: str | None, line: str, place: str) -> Taken:
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
    holder, name = _find_holder(entry, source)
    if name not in holder:
        others = [source.removesuffix(name) + other for other in holder]
        said = name_some(others) or "none"
        raise UserError(f"{place}: there is no --field {source}, but {said}")
    if not isinstance(text := holder[name], str | None):
        raise UserError(f"{place}: --field {source} is no text: {on_a_line(line):.60}")

    def put(translation: str, score: float = 0.0) -> str:
        values = {target: translation} | ({} if beside is None else {beside: round(score, 4)})
        for field, value in values.items():
            inside, name = _find_holder(entry, field)
            inside[name] = None if text is None else value
        written = json.dumps(entry, ensure_ascii=False)
        try:
            written.encode()
        except UnicodeEncodeError:  # halves of surrogate pairs, which only an escape can say
            written = json.dumps(entry)
        return written

    return text or "", put


def _find_holder(entry: dict, name: str) -> tuple[dict, str]:
    """The object that has a field of this name, or would get it, and the field's name in it."""
    first, _, rest = name.partition(".")
    if rest and name not in entry and isinstance(entry.get(first), dict):
        return _find_holder(entry[first], rest)
    return entry, name
