"""Text cut into parts of so many subwords at most, no further than it must be."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

import regex

from resmlp_mt.text.punctuation import COMMAS, UNSPACED, cut_at, may_cut

# Where a sentence that is too long is cut: after a clause, or else between words, or characters.
# Burmese, Khmer and Thai may have blanks without width between words; Tibetan has a mark between
# syllables.
_ENDS = (
    regex.compile(rf"(?V1)(?<=[;:,–—])\s+|(?<=[{COMMAS}])\s*|(?<=[…—])(?=[{UNSPACED}])"),
    re.compile("\\s+|(?<=[\u200b\u0f0b])"),
    regex.compile(r"\X"),
)
_BYTES = re.compile("(?:<0x..>){1,4}")
_LONGEST_SUBWORD = 16  # SentencePiece's default, in characters


class Ruler:
    """Measures texts in subwords, without the white space around them, and cuts them."""

    def __init__(self, find_pieces: Callable[[str], Sequence[str]], longest: int):
        self._find_pieces, self.longest = find_pieces, longest

    def measure(self, text: str) -> int:
        """How many subwords a text has."""
        return len(self._find_pieces(text.strip()))

    def cut(self, text: str) -> list[str]:
        """Cut a text into parts that fit, or are a single character. Joined they are the text."""
        if self.measure(text) <= self.longest:
            return [text]
        ends = [0]
        while ends[-1] < len(text):
            ends.append(self._find_end(text, ends[-1]))
        return cut_at(text, ends)

    def _find_end(self, text: str, start: int) -> int:
        """The end of a part from `start` on: behind the last clause that fits, or else word."""
        window = text[start : start + self.longest * _LONGEST_SUBWORD]
        pieces = self._find_pieces(window.strip())
        if len(pieces) <= self.longest and start + len(window) == len(text):
            return len(text)
        # Subwords spell most characters as they are, some in bytes, and a blank before words.
        spelled = _BYTES.sub("?", "".join(pieces[: self.longest])).lstrip("\u2581")
        most = start + len(window) - len(window.lstrip()) + len(spelled) + 1
        for pattern in _ENDS:
            ends = [match.end() for match in pattern.finditer(text, start, most)]
            for end in reversed(ends[: self._count_fitting(text, start, ends)]):
                if end > start and may_cut(text, end):
                    return end
        # No character fits, with all its marks.
        return start + max(1, self._count_fitting(text, start, range(start + 1, most)))

    def _count_fitting(self, text: str, start: int, ends: Sequence[int]) -> int:
        return bisect_right(ends, self.longest, key=lambda end: self.measure(text[start:end]))
