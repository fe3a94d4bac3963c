"""Names that a model reads in the place of words whose translation is known.

Models copy such short names nearly always, and decline none of them. Several rules use them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from resmlp_mt.text.segments import About, Place, Traced

_LETTERS, _DIGITS = "DGKLMPRSTX", "3456789"
ALPHABET = _LETTERS + _DIGITS
NAME = f"[{_LETTERS}][{_DIGITS}]"  # as a pattern
_NAMES = [letter + digit for digit in _DIGITS for letter in _LETTERS]
# For numbers, with which other words agree.
_NUMBERS = [ten + one for one in _DIGITS for ten in _DIGITS[1:] if ten != one]
_NUMBER = re.compile(r"[0-9][0-9.,]*")
# Where a name may begin and end, so that it is found again.
_BEGIN, _END = re.compile(r"(?<![A-Za-z0-9_])"), re.compile(r"(?![0-9])")

# A place in a text, and the words that a translation has for it.
Fixed = tuple[Place, str]


@dataclass(frozen=True)
class Names:
    """The words that a translation has in the place of names, and how often each is there."""

    words: Mapping[str, str]
    often: Counter[str]


def reads_names(about: About) -> bool:
    """Whether the model can read names."""
    return all(map(about.model.knows, ALPHABET))


def read_names(text: Traced, fixed: Iterable[Fixed], about: About) -> tuple[Traced, Names | None]:
    """Put names in the places that are fixed. Of places that overlap, the first counts.

    Places that touch a letter or a digit are left out, since their names would not be found again;
    all are, where the model cannot read names. A text that is read with care has other names.
    """
    fixed = [
        ((start, end), word)
        for (start, end), word in _part(text.text, fixed)
        if _BEGIN.match(text.text, start) and _END.match(text.text, end)
    ]
    if not fixed or not reads_names(about):
        return text, None
    names = _choose(text.text, (word for _, word in fixed), about.careful)
    edits = [(place, names[word]) for place, word in fixed if word in names]
    if not edits:
        return text, None
    words = {name: word for word, name in names.items()}
    return text.replace(edits), Names(words, Counter(name for _, name in edits))


def write_names(said: Traced, memo: Names, about: About, weigh: Callable) -> Traced | None:
    """Put words in the place of their names; None if some are lost or doubled."""
    found = list(find_names(said.text, memo))
    if Counter(name for _, name in found) != memo.often:
        return None
    return said.replace((place, memo.words[name]) for place, name in found)


def find_names(text: str, names: Names | None) -> Iterator[tuple[Place, str]]:
    """Yield the place of each name in a translation."""
    if names:
        # Within ASCII, since Chinese puts no blank around a name.
        pattern = rf"(?ai:(?<!\w)(?:{'|'.join(names.words)})(?!\d))"
        yield from ((match.span(), match[0].upper()) for match in re.finditer(pattern, text))


def _choose(text: str, words: Iterable[str], others: bool) -> dict[str, str]:
    """A short name for each of these words, as long as there are any that the text has not."""
    # As subwords spell it: D3 of D₃ too, or all in lower case.
    spelled = unicodedata.normalize("NFKC", text).upper()
    names, numbers = (
        (name for name in (reversed(all_) if others else all_) if name not in spelled)
        for all_ in (_NAMES, _NUMBERS)
    )
    chosen = {}
    for word in dict.fromkeys(words):
        if name := next(numbers if _NUMBER.fullmatch(word) else names, ""):
            chosen[word] = name
    return chosen


def _part(text: str, fixed: Iterable[Fixed]) -> list[Fixed]:
    """The fixed places, in order and apart: the first of overlapping ones; touching ones joined."""
    taken = bytearray(len(text))  # which characters
    parted: list[Fixed] = []
    for (start, end), word in fixed:
        if not any(taken[start:end]):
            taken[start:end] = bytes([1]) * (end - start)
            parted.append(((start, end), word))
    joined: list[Fixed] = []
    for (start, end), word in sorted(parted):
        if joined and joined[-1][0][1] == start:
            (start, _), before = joined.pop()
            word = before + word
        joined.append(((start, end), word))
    return joined
