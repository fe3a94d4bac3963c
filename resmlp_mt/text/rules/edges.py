"""What stands around all of a text: bullets, headings, quotes, emphasis, emoji."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from resmlp_mt.text.about import About
from resmlp_mt.text.rules.pictures import PICTURE
from resmlp_mt.text.traced import Traced

# Bullets, edges of tables, headings of Markdown. A dash before a digit may be a minus.
BULLET = r"[+*•‣◦⁃∙·|]|[-–—](?!\s+\d)|#{1,6}"
# What a line begins with: these, quotes of mails, boxes to tick.
BEGINNING = re.compile(rf"\s*(?:(?:{BULLET}|>+(?:\s*>)*)\s+)+(?:\[[ xX]\]\s+)?(?=\S)")
# They may stand for a verb within a sentence, and for what is meant at its beginning: "♥ you".
_PICTURES = rf"(?:{PICTURE}){{1,20}}(?:\s{{1,9}}(?:{PICTURE}){{1,20}}){{0,9}}"
_LEFT = re.compile(rf"{_PICTURES}(?:\s+|$)|{_PICTURES}(?=[^\W\d_])")
_RIGHT = re.compile(rf"(?:(?<!\s)\s{{1,9}}|(?<=[^\w\s])|(?<=[^\W\d_])){_PICTURES}$")
# Emphasis of Markdown around a sentence, or around what names the rest: "**Note:** Keep it".
_EMPHASIS = re.compile(
    r"(\*{1,3}|_{1,3}|~~)(?![\s*_~])(?:(?!\1).)*(?:[.!?:…](?=\1\s*$)|(?=\1:\s*$))(\1:?\s*$)"
)
# A sentence in quotes that ends in a word, behind which a model would close them with a stop, or
# not at all.
_QUOTED = re.compile(r'(["“”„«»])(?=\w)[^"“”„«»]*\w(?=(["“”«»])\s*$)')

_MOST = 9  # times that something stands around a text


@dataclass(frozen=True)
class Edges:
    """What stood before a text, and behind it."""

    before: str
    behind: str


def read(text: Traced, about: About) -> tuple[Traced, Edges | None]:
    """Take off what stands around it."""
    whole = text.text
    begin = BEGINNING.match(whole) if about.begins else None
    start, end = begin.end() if begin else 0, len(whole)
    for _ in range(_MOST):
        if not (found := _find(whole[start:end])):
            break
        start, end = start + found[0], start + found[1]
    if (start, end) == (0, len(whole)):
        return text, None
    rest = text.replace([((0, start), ""), ((end, len(whole)), "")])
    return rest, Edges(whole[:start], whole[end:])


def write(said: Traced, memo: Edges, about: About, weigh: Callable) -> Traced:
    """Put it around the translation."""
    end = len(said.text)
    return said.replace([((0, 0), memo.before), ((end, end), memo.behind)])


def _find(text: str) -> tuple[int, int] | None:
    """Where a text begins and ends within what is around it, if anything is."""
    for pattern in (_EMPHASIS, _QUOTED):
        if around := pattern.match(text):
            return around.end(1), around.start(2)
    left, right = _LEFT.match(text), _RIGHT.search(text)
    if left and left.end():
        return left.end(), len(text)
    return (0, right.start()) if right else None
