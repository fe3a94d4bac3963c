"""Messages of ICU, whose plurals and choices have a text for each case.

    You have {count, plural, one {# new message} other {# new messages}}.

A model reads the whole sentence of each case, with a number in the place of "#". What all their
translations begin and end with stands around the cases again. So the syntax stays, and the words in
a case fit the words around it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, takewhile
from math import prod

from resmlp_mt.text.punctuation import Place

_HEAD = re.compile(
    r"\{\s*[\w.-]+\s*,\s*(?P<kind>plural|select|selectordinal)\s*,\s*(?:offset\s*:\s*\d+\s*)?"
)
_CASE = re.compile(r"\s*(?P<name>=\d+|[\w-]+)\s*\{")
_TAIL = re.compile(r"\s*\}")
_QUOTED = re.compile("'[{}]")
_SYNTAX = re.compile(r"[{}]|'(?=[{}])")
# More choices, one in the other or side by side, and more sentences are made to do harm.
_DEEPEST, _MOST = 5, 24
# In characters: of a message, and of the sentences that are translated for it.
_LONGEST, _LONGEST_SENTENCES = 20_000, 8000
# What is read for "#", by the name of the case.
_NUMBERS = {"zero": "0", "one": "1", "two": "2", "few": "3"}
# Syntax, words and blanks, and single marks.
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
# "#" counts only within its case. The others may be one half of a pair.
_STAYS_INSIDE = frozenset("#<>*_`[")


@dataclass(frozen=True)
class _Choice:
    """What chooses among cases: the text before each, its parts, and what is behind the last."""

    kind: str
    head: str
    cases: tuple[tuple[str, str, tuple], ...]  # name, text up to the brace, parts
    tail: str


@dataclass(frozen=True)
class _Case:
    """A case of a choice: a sentence, or a further choice, and the number in the place of "#"."""

    text: "str | _Node"
    number: str
    often: int


@dataclass(frozen=True)
class _Node:
    """A choice whose cases are sentences, and what stood before and behind it."""

    before: str
    choice: _Choice
    cases: tuple[_Case, ...]
    behind: str


@dataclass(frozen=True)
class Message:
    """A text with at least one choice, as whole sentences.

    Attributes:
        texts: The sentence of each case.
    """

    _root: _Node
    texts: tuple[str, ...]
    _has_double: bool

    def put_together(self, translations: Iterable[str]) -> str | None:
        """The message with the translation of each of `texts`.

        None if a number was lost, or if an apostrophe stood before a brace: it would quote that.
        """
        if self._has_double:
            translations = (text.replace("'", "''") for text in translations)
        folded = _fold(self._root, iter(translations))
        return None if folded is None or _QUOTED.search(folded) else folded


def find_messages(text: str) -> list[Place]:
    """The places of whole plurals and choices in a text, in order.

    >>> text = "I see {n, plural, one {# dog} other {# dogs}}, {name}."
    >>> [text[start:end] for start, end in find_messages(text)]
    ['{n, plural, one {# dog} other {# dogs}}']
    """
    found, at = [], 0
    while match := _HEAD.search(text, at):
        start = match.start()
        window = text[start : start + _LONGEST]
        head = _HEAD.match(window)
        read = _read_choice(window, head, 0) if head else None
        at = start + read[1] if read else match.end()
        if read:
            found.append((start, at))
    return found


def read_message(text: str) -> Message | None:
    """A text with choices as whole sentences. None if that is too much, or braces are in quotes.

    Args:
        text: Of which `find_messages` found at least one place.
    """
    parts, _ = _read_parts(text, 0, 0, inside=False) or ((), 0)
    has_double = "''" in text
    if _count(parts) > _MOST or _hides_number(parts) or _QUOTED.search(text):
        return None
    root = _spread(parts)
    texts = tuple(_list_sentences(root))
    if sum(map(len, texts)) > _LONGEST_SENTENCES:
        return None
    if has_double:
        texts = tuple(text.replace("''", "'") for text in texts)
    return Message(root, texts, has_double)


def _read_parts(text: str, at: int, depth: int, inside: bool) -> tuple[tuple, int] | None:
    """Texts and choices, up to the brace that closes a case, or to the end of the text."""
    parts, begin, open_braces = [], at, 0
    while match := _SYNTAX.search(text, at):
        at = match.end()
        if match[0] == "'":  # what is quoted is no syntax
            at = text.find("'", at) + 1
            if not at:
                return None
        elif match[0] == "{":
            head = _HEAD.match(text, match.start())
            if read := head and _read_choice(text, head, depth):
                parts += [text[begin : match.start()], read[0]]
                begin = at = read[1]
            elif head:
                if inside:
                    return None
            else:
                open_braces += 1
        elif open_braces:
            open_braces -= 1
        elif inside:
            return (*parts, text[begin : match.start()]), at
    return None if inside else ((*parts, text[begin:]), len(text))


def _read_choice(text: str, head: re.Match, depth: int) -> tuple[_Choice, int] | None:
    """A choice and where it ends, if it is whole."""
    if depth == _DEEPEST:
        return None
    cases, at = [], head.end()
    while case := _CASE.match(text, at):
        read = _read_parts(text, case.end(), depth + 1, inside=True)
        if read is None:
            return None
        parts, at = read
        cases.append((case["name"], case[0], parts))
    tail = _TAIL.match(text, at)
    if not (cases and tail):
        return None
    return _Choice(head["kind"], head[0], tuple(cases), tail[0]), tail.end()


def _count(parts: tuple) -> int:
    """How many sentences there are; too many where choices are."""
    if len(parts) > 2 * _DEEPEST + 1:
        return _MOST + 1
    return prod(
        sum(_count(inner) for _, _, inner in part.cases)
        for part in parts
        if isinstance(part, _Choice)
    )


def _hides_number(parts: tuple, in_plural: bool = False) -> bool:
    """Whether "#" stands in the cases of "select" and means the plural around that."""
    for part in parts:
        if isinstance(part, _Choice):
            is_select = part.kind == "select"
            if any(_hides_number(inner, in_plural or not is_select) for _, _, inner in part.cases):
                return True
            if is_select and in_plural and "#" in _join_text(part):
                return True
    return False


def _join_text(*parts: str | _Choice) -> str:
    """All text of parts, and of the cases in them."""
    return " ".join(
        part
        if isinstance(part, str)
        else _join_text(part.head, *(inner for _, _, case in part.cases for inner in case))
        for part in parts
    )


def _spread(parts: tuple) -> str | _Node:
    """Put the text around the first choice into each of its cases, and so on.

    Args:
        parts: Texts and choices in turn, as `_read_parts` returns them.
    """
    if len(parts) == 1:
        return parts[0]
    before, choice, behind, *more = parts
    cases = []
    for name, _, inner in choice.cases:
        number, often = "", 0
        if choice.kind != "select":
            often = sum(part.count("#") for part in inner if isinstance(part, str))
            number = _choose_number(choice.kind, name, _join_text(*parts, *inner)) if often else ""
            inner = [p.replace("#", number) if isinstance(p, str) else p for p in inner]
        *begun, last = before + inner[0], *inner[1:]
        *begun, last = [*begun, last + behind] if begun else [last + behind]
        cases.append(_Case(_spread((*begun, last, *more)), number, often))
    return _Node(before, choice, tuple(cases), behind + _join_text(*more))


def _choose_number(kind: str, name: str, taken: str) -> str:
    """What is read for "#": a number that the case is for, as far as the text has none of these."""
    if kind == "selectordinal":
        numbers = (f"{tens}{_NUMBERS.get(name, 7)}" for tens in count(2))
    else:
        said = [name[1:]] if name.startswith("=") else [_NUMBERS[name]] if name in _NUMBERS else []
        numbers = chain(said, map(str, count(37, 9)))
    return next(number for number in numbers if number not in taken)


def _list_sentences(node: str | _Node) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    else:
        for case in node.cases:
            yield from _list_sentences(case.text)


def _fold(node: _Node, translations: Iterator[str]) -> str | None:
    """A choice with translations in the place of its sentences; None if a number was lost."""
    texts = []
    for case in node.cases:
        is_last = isinstance(case.text, str)
        said = next(translations) if is_last else _fold(case.text, translations)
        text = said if said is None else _write_number(said, case, node.choice.kind)
        if text is None:
            return None
        texts.append(text)
    cut = list(map(_cut, texts))
    begin = end = 0
    if len(set(texts)) > 1:  # else nothing would be left in the cases
        begin = _count_common(cut, node.before)
        end = _count_common([tokens[begin:][::-1] for tokens in cut], node.behind, backwards=True)
    cases = "".join(
        f"{opening}{''.join(tokens[begin : len(tokens) - end])}}}"
        for (_, opening, _), tokens in zip(node.choice.cases, cut, strict=True)
    )
    before, behind = "".join(cut[0][:begin]), "".join(cut[0][len(cut[0]) - end :])
    return f"{before}{node.choice.head}{cases}{node.choice.tail}{behind}"


def _write_number(text: str, case: _Case, kind: str) -> str | None:
    """A text with "#" in the place of the number, which is in no braces.

    None if it was lost, or if another "#" would be read as the number of the plural.
    """
    if not case.often:
        return None if "#" in text and kind != "select" and isinstance(case.text, str) else text
    number = re.compile(rf"(?<!\d){case.number}(?!\d)")
    tokens = [t if t.startswith("{") else number.sub("#", t) for t in _cut(text)]
    often = sum(token.count("#") for token in tokens if not token.startswith("{"))
    return "".join(tokens) if often == case.often else None


def _count_common(texts: list[list[str]], around: str, backwards: bool = False) -> int:
    """How many tokens all texts begin with that may stand outside of the cases.

    These are as many as may be where the source has words there. Else they are what it has.
    """
    same = list(
        takewhile(
            lambda column: len(set(column)) == 1 and column[0] not in _STAYS_INSIDE,
            zip(*texts, strict=False),
        )
    )
    if any(map(str.isalpha, around)):
        return len(same)
    wanted = _cut(around)[:: -1 if backwards else 1]
    return len(wanted) if [column[0] for column in same[: len(wanted)]] == wanted else 0


def _cut(text: str) -> list[str]:
    """Words, blanks and marks; what stands in braces as one."""
    tokens, at = [], 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        if match[0] == "{":
            at = _close(text, at)
        tokens.append(text[match.start() : at])
    return tokens


def _close(text: str, at: int) -> int:
    """Where the brace that was opened before a place is closed; at the end, if nowhere."""
    depth = 1
    for match in re.finditer(r"[{}]", text[at:]):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return at + match.end()
    return len(text)
