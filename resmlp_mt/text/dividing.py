"""Text cut into parts that a model translates at once: lines, entries, sentences, or less.

Joined, the parts are the text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, groupby
from typing import NamedTuple

import regex

from resmlp_mt.text.code import join_code
from resmlp_mt.text.fitting import Ruler
from resmlp_mt.text.punctuation import COMMAS, ENDS, UNSPACED, cut_at, may_cut
from resmlp_mt.text.rules.edges import BEGINNING, BULLET
from resmlp_mt.text.rules.literals import find_whole
from resmlp_mt.text.rules.spans import find_spans
from resmlp_mt.text.segments import Traced

LINE_ENDS = "\n\u2028\u2029"
# A line with the blank ones behind it.
_LINE = re.compile(f"[^{LINE_ENDS}]*+(?:[{LINE_ENDS}](?:[^\\S{LINE_ENDS}]*+[{LINE_ENDS}])*+|\\Z)")
# In subwords, and more than any word has. A longer one is data, or a key that was held down: to
# translate it takes as long as pages of text. A character has four bytes at most, each a subword.
_LONGEST_WORD = 100
_LONG_WORD = re.compile(f"[^\\s\u200b{UNSPACED}]{{{_LONGEST_WORD // 4},}}")
# A character of private use, in the place of literals with blanks, which stay whole.
_HOLE = "\U000fffff"
# A line that is a heading of Markdown, an item of a list or a row of a table.
_ITEM = re.compile(rf"\s*(?:{BULLET}|\d{{1,3}}[.)])\s+\S")
# Between entries of a line: tabs, and marks between blanks. » may close a quote.
_ARROW = "[\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f\u2b00-\u2b11]+"
_EDGES, _TABS = re.compile(r"\|\s*"), re.compile(r"\t\s*")
_ALWAYS = re.compile(rf"(?<=\s)(?:[|·•]|::|{_ARROW}|[»›])\s+|{_TABS.pattern}")
# Marks of sentences too. They part entries only if these are short, and have one mark, no stops.
_AT_TIMES = re.compile(r"(?<=\s)[/–—-]\s+")
_SHORT, _SHORTEST = 4, 3  # words: of several entries, and of two
_MOST = 1000  # entries of a line; it is none of entries if it has more
_STOP = regex.compile(rf"(?V1)[.!?…;:,{ENDS}{COMMAS}]\s*$")
# Emphasis of Markdown around a label: "**Note:** Keep it", "**Name**: Anna".
_LABEL = re.compile(r"\s*(\*{1,3}|_{1,3})(?![\s*_~])(?:(?!\1).)*(?::\1|\1:)\s+(?=\S)")
_BLANKS = re.compile(r"\s*")


class Part(NamedTuple):
    """A part of a text, with the white space around it.

    Attributes:
        stays: Whether it is code, or too long for a word.
        is_item: Whether it needs no final stop.
        begins: Whether its line begins with it.
    """

    text: str
    stays: bool = False
    is_item: bool = False
    begins: bool = False


def cut_lines(text: str) -> list[str]:
    """The lines of a text, each with its end and the blank lines behind it."""
    return _LINE.findall(text)[:-1]


def divide(
    text: str,
    cut: Callable[[str], list[str]],
    ruler: Ruler,
    sentences: bool,
    finely: bool = True,
    are_items: bool = False,
) -> list[Part]:
    """Cut a text into parts that fit the model.

    Lines are kept apart, and so are sentences. A sentence is cut no further than it must be: into
    clauses, between words, or else between characters with all their marks. A run of characters too
    long for a word, in a script that has blanks between words, stays whole.

    Args:
        text: Raw text.
        cut: Cuts a line into sentences that joined are the line.
        ruler: Measures parts in subwords.
        sentences: Cut lines that fit into sentences, too. Leave blocks of code whole.
        finely: Cut lines into entries, and labels and spans of sentences off.
        are_items: Every line is a heading, an item or a row.

    Returns:
        The parts, in order; no parts of a text without subwords and code.
    """
    whole = find_whole(text) if finely and _HOLE not in text else []
    held = iter([text[start:end] for start, end in whole])
    lines = cut_lines(Traced.of(text).replace((place, _HOLE) for place in whole).text)
    found: list[list] = []  # the fields of a `Part` each, its text in pieces
    blank: list[str] = []  # the text before the first
    for line, is_code in join_code(lines) if sentences else ((line, False) for line in lines):
        first = len(found)
        is_item = are_items or bool(_ITEM.match(line))
        cuts = [Part(line, True)] if is_code else _cut_line(line, cut, ruler, sentences, finely)
        for part in cuts:
            text = re.sub(_HOLE, lambda _: next(held), part.text) if whole else part.text
            if part.stays or ruler.measure(part.text):
                begins = len(found) == first
                found.append([[*blank, text], part.stays, is_item or part.is_item, begins])
                blank = []
            else:
                (found[-1][0] if found else blank).append(text)
        # An open end within a line is that of a piece of a sentence, cut at a mark or at a comma.
        for one in found[first:-1]:
            one[2] = True
    return [Part("".join(texts), *how) for texts, *how in found]


def _cut_line(
    line: str, cut: Callable[[str], list[str]], ruler: Ruler, sentences: bool, finely: bool
) -> Iterator[Part]:
    most = max(ruler.longest, _LONGEST_WORD)
    words = [word for word in _LONG_WORD.finditer(line) if ruler.measure(word[0]) > most]
    endless = {word[0] for word in words}
    for part in cut_at(line, (place for word in words for place in word.span())):
        if part in endless or (not sentences and ruler.measure(part) <= ruler.longest):
            yield Part(part, stays=part in endless)
            continue
        entries = _cut_entries(part) if finely else [part]
        is_entry = len(entries) > 1
        for has_words, run in groupby(entries, key=lambda entry: any(map(str.isalnum, entry))):
            # Entries that stand side by side and have no words are one.
            for entry in run if has_words else ["".join(run)]:
                whole = cut(entry) if has_words else [entry]
                for sentence in _cut_finely(whole) if finely else whole:
                    yield from (Part(piece, False, is_entry) for piece in ruler.cut(sentence))


def _cut_entries(line: str) -> list[str]:
    """The entries of a line, and between them the marks that part them."""
    begin = (BEGINNING.match(line) or _BLANKS.match(line)).end()
    if line.startswith("|", len(line) - len(line.lstrip())):  # a row of a table
        marks = list(_EDGES.finditer(line))
    elif "«" in line or "‹" in line:
        marks = list(_TABS.finditer(line, begin))
    elif not (marks := list(_ALWAYS.finditer(line, begin))):
        marks = list(_AT_TIMES.finditer(line, begin))
        entries = cut_at(line, (i for mark in marks for i in mark.span()))[::2] if marks else []
        most = _SHORT if len(marks) > 1 else _SHORTEST
        are_short = all(len(entry.split()) <= most and not _STOP.search(entry) for entry in entries)
        if not are_short or len({mark[0].strip() for mark in marks}) > 1:
            return [line]
    if len(marks) > _MOST:
        return [line]
    return _cut_whole(line, sorted({place for mark in marks for place in mark.span()}))


def _cut_finely(sentences: list[str]) -> list[str]:
    """Cut sentences behind a label, and at marks that stand around several of them."""
    text, ends = "".join(sentences), list(accumulate(map(len, sentences)))
    places = set(ends)
    for start, inner, end, stop in find_spans(text) if len(sentences) > 1 else ():
        if bisect_right(ends, start) < bisect_right(ends, stop - 1):
            places |= {start, inner, end, _BLANKS.match(text, stop).end()}
    has_marks = "*" in text or "_" in text
    for start, sentence in zip([0, *ends], sentences, strict=False) if has_marks else ():
        if label := _LABEL.match(sentence):
            places.add(start + label.end())
    return _cut_whole(text, sorted(places)) if len(places) > 1 else sentences


def _cut_whole(text: str, places: Iterable[int]) -> list[str]:
    """Cut a text at places, but within no character."""
    return cut_at(text, [i for i in places if 0 < i < len(text) and may_cut(text, i)])
