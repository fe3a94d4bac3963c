"""Emphasis and links of Markdown, and tags of HTML, within a sentence.

A model would tear them, and leave the words in them as they are. So it reads the sentence without
them. Then they are put around the words of the translation that come from those within them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

# A mark has no blank on its inner side. On the other one it has a blank, or punctuation and then
# a blank: what is within a name or an address, as in __init__.py, is none.
_EMPHASIS = (
    r"(?<![^\s(\[\"'«»‹›„“”‚‘¿¡–—])(?P<mark>\*{1,3}|_{1,3}|~~)(?![\s*_~])"
    r"(?P<emphasised>(?:(?!(?P=mark)).)+)(?<![\s\\])(?P=mark)"
    r"(?=[.,;:!?…)\]\"'«»‹›“”‘’–—]*(?:\s|$))"
)
_LINK = r"!?\[(?P<label>[^\[\]]+)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)"
_TAG = (
    r"<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>]*)?>(?!\s)"
    r"(?P<tagged>(?:(?!</?(?P=tag)\b).)+)(?<!\s)</(?P=tag)>"
)
_CODE = r"(?P<code>(?P<ticks>`{1,2})(?!`)[^`]+(?P=ticks)(?!`))"  # holds no marks
_SPAN = re.compile(f"{_CODE}|{_EMPHASIS}|{_LINK}|{_TAG}", re.DOTALL)
_BEGINS_SPAN = re.compile(r"[*_~[<]")
# Deeper ones are made to do harm.
_DEEPEST = 10
_INNER = ("emphasised", "label", "tagged")
_BLANK = re.compile(r"\s")
_GOES_ON = re.compile(r"\w[^\s\w]*$")
# What may stand around a word without being of it.
_BEFORE = re.compile(r"[.\"'(\[«»‹›„“”‚‘¿¡]*")
_BEHIND = re.compile(r"[.,;:!?…)\]»«›‹”“‘’\"']*$")


@dataclass(frozen=True)
class Span:
    """What stands around some words of a text.

    Attributes:
        words: Their numbers, counted from 0 by the white space between them.
        open, close: What stands before them, and behind.
        begins, ends: How much punctuation the first and the last of them have within it.
    """

    words: range
    open: str
    close: str
    begins: int
    ends: int


@dataclass(frozen=True)
class Plain:
    """A text without what stands around its words.

    Attributes:
        text: What is left.
        spans: What was taken off. One within another comes before it.
        places: Where the last character of each word stands in the text as it was.
    """

    text: str
    spans: tuple[Span, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class _Placed:
    """A span, the words of a translation that it is put around, and where it begins and ends."""

    span: Span
    run: range
    start: int
    end: int


def take_spans(text: str) -> Plain:
    """Take emphasis, links and tags off a sentence.

    >>> take_spans("This is **very** good.").text
    'This is very good.'

    Args:
        text: A part of a source that is translated at once.
    """
    kept: list[int] = []
    found: list[tuple[int, int, str, str]] = []
    if _BEGINS_SPAN.search(text):
        _read(text, 0, kept, found)
    plain = "".join(text[place] for place in kept) if found else text
    words = [word.span() for word in re.finditer(r"\S+", plain)]
    spans = [_find_words(plain, words, *span) for span in found]
    places = tuple(kept[end - 1] if found else end - 1 for _, end in words)
    return Plain(plain, tuple(span for span in spans if span.words), places)


def find_emphasis(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Where emphasis begins in a text, what is in it, that ends, and the emphasis ends."""
    for match in re.finditer(_EMPHASIS, text, re.DOTALL):
        yield match.start(), *match.span("emphasised"), match.end()


def put_spans(
    translation: str, spans: Iterable[Span], pairs: Sequence[tuple[int, int]]
) -> tuple[str, list[int]]:
    """Put what was taken off a sentence around the words of its translation.

    Args:
        translation: Of what `take_spans` left.
        spans: What it took off.
        pairs: A word of the source, and one of the translation that comes from it; numbers of both.

    Returns:
        The translation with each span once, and where the last character of each of its words
        stands there. A span is left out where there is no word for it.
    """
    words = [word.span() for word in re.finditer(r"\S+", translation)]
    placed: list[_Placed] = []
    for span in spans:
        room = _find_room(span, placed, len(words))
        if not (run := _find_run(span, placed, room, pairs)):
            continue
        start, end = words[run[0]][0], words[run[-1]][1]
        first = _BEFORE.match(translation, start, end).end()
        last = _BEHIND.search(translation, start, end).start()
        if first < last:  # else it is punctuation alone
            start, end = max(start, first - span.begins), min(end, last + span.ends)
        inside = [other for other in placed if other.run[0] in run and _holds(span, other.span)]
        start = min([start, *(other.start for other in inside)])
        end = max([end, *(other.end for other in inside)])
        placed.append(_Placed(span, run, start, end))
    before, behind = [""] * (len(translation) + 1), [""] * (len(translation) + 1)
    for one in placed:  # inner ones first
        before[one.start] = one.span.open + before[one.start]
        behind[one.end] += one.span.close
    parts = [*map("".join, zip(behind, before, [*translation, ""], strict=True))]
    ends = list(accumulate(map(len, parts)))
    return "".join(parts), [ends[end - 1] - 1 for _, end in words]


def _read(
    text: str,
    offset: int,
    kept: list[int],
    found: list[tuple[int, int, str, str]],
    room: int = _DEEPEST,
) -> None:
    """Note which characters are kept, and what was taken off them, inner spans first."""
    place = 0
    for match in _SPAN.finditer(text) if room else ():
        inner = next((name for name in _INNER if match[name]), None)
        between = text[place : match.start()]
        beside = place > 0 and not _BLANK.search(between)  # in one word with the last
        if inner is None or beside or match["mark"] and _GOES_ON.search(between):
            continue
        if not any(map(str.isalnum, match[inner])):
            continue
        kept += range(offset + place, offset + match.start())
        start, end = match.span(inner)
        first = len(kept)
        _read(match[inner], offset + start, kept, found, room - 1)
        found.append((first, len(kept), text[match.start() : start], text[end : match.end()]))
        place = match.end()
    kept += range(offset + place, offset + len(text))


def _find_words(
    text: str, words: list[tuple[int, int]], start: int, end: int, opened: str, closed: str
) -> Span:
    """What was taken off a part of a text, by the words of that."""
    inside = [i for i, (begin, stop) in enumerate(words) if begin < end and start < stop]
    part = text[start:end]
    begins, ends = len(_BEFORE.match(part)[0]), len(_BEHIND.search(part)[0])
    numbers = range(inside[0], inside[-1] + 1) if inside else range(0)
    return Span(numbers, opened, closed, begins, ends)


def _find_room(span: Span, placed: list[_Placed], count: int) -> set[int]:
    """Words of a translation that are in no other span, but for those within this one."""
    room = set(range(count))
    for other in placed:
        if not _holds(span, other.span):
            room -= set(other.run)
    return room


def _holds(span: Span, other: Span) -> bool:
    return set(other.words) <= set(span.words)


def _find_run(
    span: Span,
    placed: list[_Placed],
    room: set[int],
    pairs: Sequence[tuple[int, int]],
) -> range:
    """The neighbours among the words of a translation that a span is put around; none at worst.

    Each word that comes from those of the source counts for them, and each other one against.
    """
    wanted = {target for source, target in pairs if source in span.words} & room
    if not wanted and room:
        near = min(pairs, key=lambda pair: abs(pair[0] - span.words[0]), default=(0, 0))[1]
        wanted = {min(room, key=lambda word: abs(word - near))}
    best, most, score, start = range(0), 0, 0, 0
    for word in range(max(room, default=-1) + 1):
        score += 1 if word in wanted else -1
        if score <= 0 or word not in room:
            score, start = 0, word + 1
        elif score > most:
            best, most = range(start, word + 1), score
    inside = [other.run for other in placed if _holds(span, other.span)]
    if not best or not inside:
        return best
    ends = [best, *inside]
    all_of_them = range(min(run[0] for run in ends), max(run[-1] for run in ends) + 1)
    # Spans do not cross: another one may have come between those within this one.
    return all_of_them if room.issuperset(all_of_them) else max(inside, key=len)
