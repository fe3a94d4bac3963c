"""Emphasis and links of Markdown, and tags of HTML, around the words that translate theirs."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

import numpy as np

from resmlp_mt.text.rules.literals import WHOLE
from resmlp_mt.text.segments import About, Place, Traced
from resmlp_mt.text.sentences import parts_sentences_by_blanks

# A mark has no blank on its inner side. On the other one it has a blank, or punctuation and then
# a blank: what is within a name or an address, as in __init__.py, is none. __init__ is a name too.
_EMPHASIS = (
    r"(?<![^\s(\[\"'«»‹›„“”‚‘¿¡–—])(?!__[a-z]+(?:_[a-z]+)*__)(?P<mark>\*{1,3}|_{1,3}|~~)(?![\s*_~])"
    r"(?P<emphasised>(?:(?!(?P=mark)).)+)(?<![\s\\])(?P=mark)"
    r"(?=[.,;:!?…)\]\"'«»‹›“”‘’–—]*(?:\s|$))"
)
_ADDRESS = r"\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)"
# The text of a link may be an image.
_LINK = rf"(?<!\\)!?\[(?P<label>(?:!\[[^\[\]]*\]\([^()\s]*\)|[^\[\]])+)\]{_ADDRESS}"
_TAG = (
    r"(?<!\\)<(?P<tag>[A-Za-z0-9][\w:-]*)(?:[\s.][^<>]*)?>(?!\s)"
    r"(?P<tagged>(?:(?!</?(?P=tag)\b).){1,1000})(?<!\s)</(?P=tag)>"
)
# Of callers that have a tree: each element once, by its number, whatever its words are. A text may
# begin within it, or end.
NUMBERED = re.compile(r"<(/?)g(\d+)>")
_SPAN = re.compile(f"{WHOLE}|{_EMPHASIS}|{_LINK}|{_TAG}", re.DOTALL)
_BEGINS_SPAN = re.compile(r"[*_~[<]")
_DEEPEST = 10  # deeper ones are made to do harm
# Marks within a word stay: m<sup>2</sup>, house[1](...).
_WORD_BEFORE = re.compile(r"\w[^\s\w]*$")
_WORD_BEHIND = re.compile(r"[^\s\w]*\w")
# Punctuation that may stand around words without being of them.
_BEFORE, _BEHIND = ".\"'([«»‹›„“”‚‘¿¡", ".,;:!?…)]»«›‹”“‘’\"'"
# The least share of the marked words in a word that translates one: chosen on sentences of the
# mix that have marks in both languages. "Sie", which stands for nothing in English, has a half.
_MOST = 0.7

# Where the text within marks begins and ends, the marks before it, and those behind it.
_Found = tuple[int, int, str, str]


@dataclass(frozen=True)
class Span:
    """Marks around some words of a text.

    Attributes:
        words: Numbers of the words, counted from 0 by the white space between them.
        open, close: The marks before the words, and behind.
        begins, ends: Characters of punctuation within, before the words and behind them.
    """

    words: range
    open: str
    close: str
    begins: int
    ends: int


def read(text: Traced, about: About) -> tuple[Traced, Sequence[Span] | None]:
    """Take emphasis, links and tags off a sentence."""
    if not _BEGINS_SPAN.search(text.text):
        return text, None
    plain, found = _take_off(text, list(_find_numbered(text.text)))
    if not plain.text.strip():
        return text, None
    # Marks around no words are put before all of the translation, or behind it.
    size = len(plain.text)
    for i, (start, end, before, behind) in enumerate(found):
        if start == end:
            both = before + behind
            found[i] = (0, size, "", both) if start else (0, size, both, "")
    if all(map(parts_sentences_by_blanks, about.languages)):
        plain, found = _take_off(plain, list(_find(plain.text)), found)
    words = [word.span() for word in re.finditer(r"\S+", plain.text)]
    spans = []
    for start, end, *marks in found:
        first = bisect_right(words, start, key=itemgetter(1))
        last = bisect_left(words, end, key=itemgetter(0))
        if first < last:
            begin, stop = _find_core(plain, start, end)
            spans.append(Span(range(first, last), *marks, begin - start, end - stop))
    return plain, sorted(spans, key=lambda span: len(span.words)) or None


def write(said: Traced, memo: Sequence[Span], about: About, weigh: Callable) -> Traced:
    """Put the marks around the words that translate the marked ones."""
    words = _cut_words(said)
    if not words:
        return said
    weights = weigh(said)[[number for number, _, _ in words]]
    placed: list[tuple[Span, range, int, int]] = []  # around which words, from where to where
    before, behind = defaultdict(str), defaultdict(str)
    for span in memo:  # inner ones come first
        inside = [other for other in placed if {*other[0].words} <= {*span.words}]
        free = np.ones(len(words), bool)
        for other in placed:
            free[other[1]] &= other in inside
        shares = weights[:, span.words].sum(1)
        if run := _find_run(shares, free, [run for _, run, _, _ in inside]):
            start, end = words[run[0]][1], words[run[-1]][2]
            first, last = _find_core(said, start, end)
            if first < last:  # else it is punctuation alone
                start, end = max(start, first - span.begins), min(end, last + span.ends)
            inside = [other for other in inside if other[1][0] in run]
            start = min([start, *(begin for _, _, begin, _ in inside)])
            end = max([end, *(stop for *_, stop in inside)])
        else:  # no word is left: around the span that has the likeliest one
            word = int(shares.argmax())
            around = [other[1:] for other in reversed(placed) if word in other[1]]
            run, start, end = max(around, key=lambda other: len(other[0]))
        placed.append((span, run, start, end))
        before[start] = span.open + before[start]
        behind[end] += span.close
    return said.replace(((i, i), behind[i] + before[i]) for i in sorted({*before, *behind}))


def find_spans(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield four places each: emphasis or a tag begins, its text begins, its text ends, it ends."""
    for match in _SPAN.finditer(text):
        if match.lastgroup in ("emphasised", "tagged") and not NUMBERED.match(match[0]):
            yield match.start(), *match.span(match.lastgroup), match.end()


def _find_numbered(text: str) -> Iterator[_Found]:
    """Yield numbered tags, inner ones first. A text may lack the other end of one."""
    opened: list[re.Match] = []
    for tag in NUMBERED.finditer(text):
        if not tag[1]:
            opened.append(tag)
        elif opened and opened[-1][2] == tag[2]:
            first = opened.pop()
            yield first.end(), tag.start(), first[0], tag[0]
        else:
            yield 0, tag.start(), "", tag[0]
    for first in reversed(opened):
        yield first.end(), len(text), first[0], ""


def _find(text: str, offset: int = 0, room: int = _DEEPEST) -> Iterator[_Found]:
    """Yield emphasis, links and tags, inner ones first."""
    place = 0
    for match in _SPAN.finditer(text) if room else ():
        between = text[place : match.start()]
        beside = place > 0 and not any(map(str.isspace, between))  # in one word with the last
        is_span = match.lastgroup in ("emphasised", "label", "tagged")
        if not is_span or beside or _WORD_BEFORE.search(between):
            continue
        start, end = match.span(match.lastgroup)
        if _WORD_BEHIND.match(text, match.end()) or not any(map(str.isalnum, text[start:end])):
            continue
        yield from _find(text[start:end], offset + start, room - 1)
        yield offset + start, offset + end, text[match.start() : start], text[end : match.end()]
        place = match.end()


def _take_off(
    text: Traced, found: Sequence[_Found], others: Sequence[_Found] = ()
) -> tuple[Traced, list[_Found]]:
    """A text without the marks found in it, and the places of these, and of others, in it."""
    before = [(start - len(marks), start) for start, _, marks, _ in found if marks]
    behind = [(end, end + len(marks)) for _, end, _, marks in found if marks]
    edits = [(place, "") for place in sorted(before + behind)]
    kept = Traced.of(text.text).replace(edits).places
    moved = [
        (bisect_left(kept, start), bisect_left(kept, end), *marks)
        for start, end, *marks in [*found, *others]
    ]
    return text.replace(edits), moved


def _cut_words(said: Traced) -> list[tuple[int, int, int]]:
    """The number of each word, and where it begins and ends.

    Several words of one name, as code, count as one: they come from one place.
    """
    words: list[tuple[int, int, int]] = []
    for number, word in enumerate(re.finditer(r"\S+", said.text)):
        one = number, *word.span()
        if words and said.places[one[1]] <= said.places[words[-1][2] - 1]:
            one = (*words.pop()[:2], one[2])
        words.append(one)
    return words


def _find_core(text: Traced, start: int, end: int) -> Place:
    """Where a part of a text begins and ends without the punctuation and blanks around it.

    Marks that were put in for a name are of the part: the stop of "&amp;".
    """

    def is_of_it(i: int, marks: str) -> bool:
        near = pairwise(text.places[max(0, i - 2) : i + 2])
        is_mark = text.text[i] in marks or text.text[i].isspace()
        return not is_mark or any(place == other for place, other in near)

    first = next((i for i in range(start, end) if is_of_it(i, _BEFORE)), end)
    last = next((i for i in reversed(range(start, end)) if is_of_it(i, _BEHIND)), start - 1)
    return first, last + 1


def _find_run(shares: np.ndarray, free: np.ndarray, inside: list[range]) -> range:
    """The run of words, among T of a translation, that a span is put around; it may be empty.

    Args:
        shares: Of the words of the span, in each word. (T,).
        free: Whether each word is in no other span, but for those within this one. (T,).
        inside: The runs of the spans within this one.
    """
    best, most, score, start = range(0), 0.0, 0.0, 0
    for word, (gain, is_free) in enumerate(zip(shares - _MOST, free, strict=True)):
        score += gain
        if score <= 0 or not is_free:
            score, start = 0.0, word + 1
        elif score > most:
            best, most = range(start, word + 1), score
    if not best and free.any():
        word = int(np.where(free, shares, -1).argmax())
        best = range(word, word + 1)
    if not best or not inside:
        return best
    runs = [best, *inside]
    joined = range(min(run[0] for run in runs), max(run[-1] for run in runs) + 1)
    # Spans do not cross: another one may have come between those within this one.
    return joined if free[joined].all() else max(inside, key=len)
