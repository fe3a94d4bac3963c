"""Emoji within a sentence, and marks that stand for a part of a page there."""

import re
from bisect import bisect_left
from collections.abc import Callable

from resmlp_mt.text.punctuation import UNSPACED
from resmlp_mt.text.rules.names import Names, find_names, read_names
from resmlp_mt.text.segments import About, Traced

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

# Names of pictures, and each picture with the share of the words that stand before it.
Pictures = tuple[Names | None, list[tuple[str, float]]]


def read(text: Traced, about: About) -> tuple[Traced, Pictures | None]:
    """Put names in the place of pictures; take them off where the model cannot read names."""
    around = f" {text.text} "  # those that touch no letter; those that touch one another as one
    fixed = [
        (match.span(), match[0])
        for match in _PICTURES.finditer(text.text)
        if not _LETTER.search(around[match.start()] + around[match.end() + 1])
    ]
    if not fixed:
        return text, None
    words = [word.start() for word in re.finditer(r"\S+", text.text)]
    shares = [(picture, bisect_left(words, start) / len(words)) for (start, _), picture in fixed]
    said, names = read_names(text, fixed, about)
    if names is None:
        said = text.replace((place, "") for place, _ in fixed)
    return said, (names, shares)


def write(said: Traced, memo: Pictures, about: About, weigh: Callable) -> Traced:
    """Put each picture in the place of its name, and a lost one between other words."""
    names, shares = memo
    lost, edits = dict(enumerate(shares)), []
    for place, name in find_names(said.text, names):
        kept = next((i for i, (picture, _) in lost.items() if picture == names.words[name]), None)
        edits.append((place, "" if kept is None else lost.pop(kept)[0]))
    said = said.replace(edits)
    for picture, share in lost.values():
        ends = [*(word.start() for word in re.finditer(r"\S+", said.text)), len(said.text)]
        place = ends[round(share * (len(ends) - 1))]
        new = f"{picture} " if place < len(said.text) else f" {picture}"
        said = said.replace([((place, place), new)])
    return said
