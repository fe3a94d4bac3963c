"""Marks around all of a text: bullets, headings, quotes, emoji."""

import re
from collections.abc import Callable

from resmlp_mt.text.rules.pictures import PICTURE
from resmlp_mt.text.segments import About, Place, Traced

# Bullets, edges of tables, headings of Markdown. A dash before a digit may be a minus.
BULLET = r"[+*•‣◦⁃∙·|]|[-–—](?!\s+\d)|#{1,6}"
# The beginning of a line: these marks, quotes of mails, boxes to tick.
BEGINNING = re.compile(rf"\s*(?:(?:{BULLET}|>(?:\s*+>)*+)\s+)+(?:\[[ xX]\]\s+)?(?=\S)")
# Pictures may stand for a verb within a sentence, and for a word at its beginning: "♥ you".
_PICTURES = rf"(?:{PICTURE}){{1,20}}(?:\s{{1,9}}(?:{PICTURE}){{1,20}}){{0,9}}"
_LEFT = re.compile(rf"{_PICTURES}(?:\s+|$)|{_PICTURES}(?=[^\W\d_])")
_RIGHT = re.compile(rf"(?:(?<!\s)\s{{1,9}}|(?<=[^\w\s])|(?<=[^\W\d_])){_PICTURES}$")
# A sentence in quotes that ends in a word, behind which a model would close them with a stop, or
# not at all.
_QUOTED = re.compile(r'(["“”„«»])(?=\w)[^"“”„«»]*\w(?=(["“”«»])\s*$)')

_MOST = 9  # layers of marks around a text


def read(text: Traced, about: About) -> tuple[Traced, tuple[str, str] | None]:
    """Take off the marks around a text; the memo is those before it, and those behind."""
    whole = text.text
    begin = BEGINNING.match(whole) if about.begins else None
    start, end = begin.end() if begin else 0, len(whole)
    for _ in range(_MOST):
        first, last = _find(whole[start:end])
        if last - first == end - start:
            break
        start, end = start + first, start + last
    if (start, end) == (0, len(whole)):
        return text, None
    rest = text.replace([((0, start), ""), ((end, len(whole)), "")])
    return rest, (whole[:start], whole[end:])


def write(said: Traced, memo: tuple[str, str], about: About, weigh: Callable) -> Traced:
    """Put the marks around the translation."""
    end = len(said.text)
    return said.replace(zip([(0, 0), (end, end)], memo, strict=True))


def _find(text: str) -> Place:
    """Where a text begins and ends within the marks around it."""
    if around := _QUOTED.match(text):
        return around.end(1), around.start(2)
    if left := _LEFT.match(text):
        return left.end(), len(text)
    right = _RIGHT.search(text)
    return 0, right.start() if right else len(text)
