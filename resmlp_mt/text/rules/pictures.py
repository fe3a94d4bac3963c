"""Emoji within a sentence, and what stands for a part of a page there."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from resmlp_mt.text.about import About
from resmlp_mt.text.punctuation import UNSPACED, Place
from resmlp_mt.text.rules.names import Names, find_names, read_names
from resmlp_mt.text.traced import Traced

# A picture with what colours or joins it, or a digit on a key. Flags are two letters of their own.
PICTURE = (
    "(?:[\u2190-\u21ff\u231a-\u23ff\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\U0001f000-\U0001faff]"
    "|[0-9#*]\ufe0f?\u20e3)[\u200d\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
)
# From this character on, in Unicode's last plane, all are private. Callers put one in the place of
# what they take out of a sentence, as a word.
FIRST_MARK = "\U00100000"
_LETTER = re.compile(rf"[^\W_{UNSPACED}]")
_PICTURES = re.compile(rf"(?:{PICTURE}|[{FIRST_MARK}-\U0010ffff])+")


@dataclass(frozen=True)
class Pictures:
    """What was taken off a sentence.

    Attributes:
        names: Of those that the model reads by names.
        shares: Each, and the share of the words that stand before it.
    """

    names: Names | None
    shares: Sequence[tuple[str, float]]


def read(text: Traced, about: About) -> tuple[Traced, Pictures | None]:
    """Put names in the place of pictures; take them off where the model cannot read names."""
    places = list(_find(text.text))
    if not places:
        return text, None
    words = [word.start() for word in re.finditer(r"\S+", text.text)]
    shares = [(text.text[s:e], bisect_left(words, s) / len(words)) for s, e in places]
    fixed = list(zip(places, (picture for picture, _ in shares), strict=True))
    said, names = read_names(text, fixed, about)
    if names is None:
        said = text.replace((place, "") for place in places)
    return said, Pictures(names, shares)


def write(said: Traced, memo: Pictures, about: About, weigh: Callable) -> Traced:
    """Put each picture in the place of its name, and a lost one between other words."""
    lost, edits = list(memo.shares), []
    for place, name in find_names(said.text, memo.names):
        picture = memo.names.words[name]
        kept = next((one for one in lost if one[0] == picture), None)
        if kept:
            lost.remove(kept)
        edits.append((place, picture if kept else ""))
    said = said.replace(edits)
    for picture, share in lost:
        starts = [word.start() for word in re.finditer(r"\S+", said.text)]
        number = round(share * len(starts))
        if number < len(starts):
            said = said.replace([((starts[number], starts[number]), f"{picture} ")])
        else:
            said = said.replace([((len(said.text), len(said.text)), f" {picture}")])
    return said


def _find(text: str) -> Iterator[Place]:
    """Their places, of those that touch as one; not of those that touch a word on both sides."""
    for match in _PICTURES.finditer(text):
        start, end = match.span()
        beside = text[max(0, start - 1) : start] + text[end : end + 1]
        if not _LETTER.search(beside):
            yield start, end
