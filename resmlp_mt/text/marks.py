"""Marks that are no words: emoji, bullets, headings, tabs, statements of templates, emphasis.

A model would change or lose them.

They are cut off, so that they stay as they are, and the text around them is translated alone.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain

from resmlp_mt.text.punctuation import Place, cut_at, may_cut
from resmlp_mt.text.spans import find_spans

# A picture with what colours or joins it, or a digit on a key. Flags are two letters of their own.
_PICTURE = (
    "(?:[\u2190-\u21ff\u231a-\u23ff\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\U0001f000-\U0001faff]"
    "|[0-9#*]\ufe0f?\u20e3)[\u200d\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
)
_TOUCHING = re.compile(rf"(?:{_PICTURE})+")
_PICTURES = re.compile(rf"(?:{_PICTURE})+(?:\s+(?:{_PICTURE})+)*\s*")
# They may stand for a verb within a sentence: "I ♥ you".
_HEART = re.compile(
    "[\u2661\u2665\u2764\U0001f493-\U0001f49f\U0001f5a4\U0001f90d-\U0001f90f\U0001f9e1"
    "\U0001fa75-\U0001fa77]"
)
# They part what is to be done, one thing after the other: "File → Open".
_ARROW = re.compile("[\u2190-\u21ff\u27f0-\u27ff\u2900-\u297f\u2b00-\u2b11]")
# Of Jinja and of ERB: "{% if new %}", "<% end %>".
_STATEMENT = re.compile(r"\{%[^{}%]{1,200}%\}|<%(?!=)[^<>%]{1,200}%>")
# What breaks a line in the texts of programs and of HTML, and what stands right beside it then.
_BREAK = re.compile(r"(?<!\\)(?:\\[nrt])+|<[bB][rR]\s{0,9}/?>")
_BEFORE_BREAK = re.compile(r"[^\W_]|[.,:;!?…)}%>]")
_BEHIND_BREAK = re.compile(r"\d|[{%<:]")
_WITHIN_PATH = re.compile(r"(?:\b[A-Za-z]:|\\)\\\S*\Z")
_LONGEST_PATH = 300
# Between the forms of a plural in Laravel and in Vue: "one apple|many apples".
_BAR = re.compile(r"(?<!\|)\|(?!\|)")
_STEM = re.compile(r"[^\W\d_]{3,}")
_MOST_FORMS = 6
_MARKUP = re.compile(
    rf"\[[xX]\]|</?[A-Za-z][^<>]*>|{_STATEMENT.pattern}|^\s*(?:\\[nrt])+\s*$"
    r"|^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->.*$"  # when a subtitle is shown, and where
    r"|^\s*(?:`{3,}|~{3,})(?: ?[\w+#.-]+)?\s*$"  # around a block of code, with its language
)
_BLANKS = re.compile(r"\s*")
_TABS = re.compile(r"\t\s*")
_EDGES = re.compile(r"\|\s*")
# Bullets, edges of tables, headings of Markdown. A dash before a digit may be a minus.
BULLET = r"[+*•‣◦⁃∙·|]|[-–—](?!\s+\d)|#{1,6}"
# What a line begins with: these, quotes of mails, boxes to tick.
_BEGINNING = re.compile(rf"\s*(?:(?:{BULLET}|>+(?:\s*>)*)\s+)+(?:\[[ xX]\]\s+)?(?=\S)")
# Emphasis of Markdown around all of a sentence, around its end, or around what names the rest:
# "**Note:** Keep it", "**Name**: Anna".
_EMPHASIS = re.compile(
    r"(\*{1,3}|_{1,3}|~~)(?![\s*_~])(?:(?!\1).)*(?:[.!?:…](?=\1)|(?=\1(?:\s*$|:\s)))(\1:?(?:\s+|$))"
)

# A sentence in quotes that ends in a word, behind which a model would close them with a stop, or
# not at all.
_QUOTED = re.compile(r'(["“”„«»])(?=\w)[^"“”„«»]*\w(?=(["“”«»])\s*$)')


def cut_marks(line: list[str], within: bool = True) -> list[str]:
    """Cut the sentences of a line further, before and behind marks.

    >>> cut_marks(["- I love you ", "❤️"])
    ['- ', 'I love you ', '❤️']

    Args:
        line: Its sentences, in order.
        within: Cut at pictures in the midst of a sentence too, where these stand between blanks.
            Without it, at arrows alone.

    Returns:
        Parts that joined are the line.
    """
    wide = list(_find_wide(line))
    # Sentences that share emphasis which is not around all of them: no mark shall be alone.
    torn = {i for first, last, around in wide if not around for i in range(first, last)}
    if torn:
        line = _join_torn(line, torn)
        wide = list(_find_wide(line))
    parts, offset = [], 0
    in_table = bool(line) and line[0].lstrip().startswith("|")
    around = sorted(chain.from_iterable(around for _, _, around in wide))
    for number, sentence in enumerate(line):
        begin = _BEGINNING.match(sentence) if number == 0 else None
        start = begin.end() if begin else 0
        found = {start, *_find_places(sentence, start, in_table, within)}
        end = offset + len(sentence)
        inside = around[bisect_right(around, offset) : bisect_left(around, end)]
        found = (found | {place - offset for place in inside}) - {0, len(sentence)}
        offset = end
        parts += cut_at(sentence, sorted(i for i in found if may_cut(sentence, i)))
    return parts


def find_pictures(text: str) -> Iterator[Place]:
    """Yield the places of pictures in a text, of those that touch each other as one.

    Those that a letter or a digit touches are left out: they would be a part of a word.
    """
    for match in _TOUCHING.finditer(text):
        start, end = match.span()
        beside = text[max(0, start - 1) : start] + text[end : end + 1]
        if not any(map(str.isalnum, beside)):
            yield start, end


def holds_text(text: str) -> bool:
    """Whether there is something to translate. Numbers, rules, emoji, boxes and tags stay."""
    return any(map(str.isalpha, _MARKUP.sub("", text)))


def _join_torn(line: list[str], torn: set[int]) -> list[str]:
    """The sentences, but those of these numbers each as one with the next."""
    parts = [""]
    for number, sentence in enumerate(line):
        parts[-1] += sentence
        if number not in torn:
            parts.append("")
    return parts[:-1]


def _find_wide(line: list[str]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Emphasis and tags over several sentences: the first, the last, and where their marks stand.

    They have no places where they are not around all of these sentences.
    """
    text, ends = "".join(line), list(accumulate(map(len, line)))
    begin = _BEGINNING.match(text)
    begins = [begin.end() if begin else 0, *ends]
    for start, inner, end, stop in find_spans(text) if len(line) > 1 else ():
        first, last = bisect_right(ends, start), bisect_right(ends, stop - 1)
        if first == last:
            continue
        places = start, inner, end, _BLANKS.match(text, stop).end()
        before, within, behind = (
            any(map(str.isalnum, _MARKUP.sub("", text[i:j])))
            for i, j in ((begins[first], start), (begins[last], end), (stop, ends[last]))
        )
        yield first, last, () if before or (within and behind) else places


def _find_places(sentence: str, start: int, in_table: bool, within: bool) -> Iterator[int]:
    """Where a sentence is cut, of which the text begins at `start`."""
    first = _BLANKS.match(sentence, start).end()
    for match in _PICTURES.finditer(sentence, start):
        between = sentence[match.start() - 1].isspace() and match[0][-1].isspace()
        at_edge = match.start() == first or match.end() == len(sentence)
        parts = _ARROW.match(match[0]) or (within and not _HEART.search(match[0]))
        if at_edge or between and parts:
            yield from match.span()
    for match in _TABS.finditer(sentence, first):
        yield match.end()
    if "`" not in sentence:
        yield from _find_breaks(sentence, first)
        yield from _find_bars(sentence)
    for match in _STATEMENT.finditer(sentence, first):
        yield from (match.start(), _BLANKS.match(sentence, match.end()).end())
    if in_table:
        for match in _EDGES.finditer(sentence, first):
            yield from match.span()
    if quoted := _QUOTED.match(sentence, first):
        yield from (quoted.end(1), quoted.start(2))
    if emphasis := _EMPHASIS.match(sentence, first):
        yield from (first, emphasis.end(1), emphasis.start(2), emphasis.end(2))


def _find_breaks(sentence: str, first: int) -> Iterator[int]:
    """Where a line is broken, by what touches other text. A break between blanks is a word."""
    for match in _BREAK.finditer(sentence, first):
        start, end = match.span()
        is_escape = match[0].startswith("\\")
        before, behind = sentence[max(0, start - 1) : start], sentence[end : end + 1]
        if not (_BEFORE_BREAK.match(before) or behind.isupper() or _BEHIND_BREAK.match(behind)):
            continue
        # As \nabla and \textbf, or a name of a folder.
        is_name = end - start == 2 and "a" <= behind <= "z"
        path = is_escape and _WITHIN_PATH.search(
            sentence[max(0, start - _LONGEST_PATH) : start + 1]
        )
        if not (is_escape and is_name or path):
            yield from _widen(sentence, start, end)


def _widen(sentence: str, start: int, end: int) -> Place:
    """A place with the blanks around it."""
    while start and sentence[start - 1].isspace():
        start -= 1
    return start, _BLANKS.match(sentence, end).end()


def _find_bars(sentence: str) -> Iterator[int]:
    """Where the forms of a plural are parted: all have a word that begins in the same way."""
    if not 0 < sentence.count("|") < _MOST_FORMS:
        return
    bars = [_widen(sentence, *bar.span()) for bar in _BAR.finditer(sentence)]
    forms = cut_at(sentence, chain.from_iterable(bars))[::2]
    stems = [{_spell_stem(word) for word in _STEM.findall(form)} for form in forms]
    closed = all(form.count(a) == form.count(b) for form in forms for a, b in ("()", "[]", "{}"))
    closed = closed and not any(form.count('"') % 2 for form in forms)
    if len(forms) == len(bars) + 1 and closed and set.intersection(*stems):
        yield from chain.from_iterable(bars)


def _spell_stem(word: str) -> str:
    """What forms of a word have in common, without the marks of letters: "apfe" of Äpfel."""
    letters = filter(str.isalpha, unicodedata.normalize("NFKD", word.casefold()))
    return "".join(letters)[:4]
