"""Text cut into parts of so many subwords at most, no further than it must be."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import regex

from resmlp_mt.text.punctuation import COMMAS, UNSPACED, cut_at, may_cut

# Where a sentence that is too long is cut: after a clause, or else between words. Burmese, Khmer
# and Thai may have blanks without width between words; Tibetan has a mark between syllables.
_CLAUSE = regex.compile(rf"(?V1)(?<=[;:,–—])\s+|(?<=[{COMMAS}])\s*|(?<=[…—])(?=[{UNSPACED}])")
_WORD = re.compile("\\s+|(?<=[\u200b\u0f0b])")
_LONGEST_SUBWORD = 16  # SentencePiece's default, in characters


class Ruler:
    """Measures texts in subwords, without the white space around them, and cuts them to a length.

    Args:
        find_pieces: The subwords of a text, which is without white space around it.
        longest: Subwords that fit.
    """

    def __init__(self, find_pieces: Callable[[str], Sequence[str]], longest: int):
        self._find_pieces, self.longest = find_pieces, longest

    def find_pieces(self, text: str) -> Sequence[str]:
        """The subwords of a text."""
        return self._find_pieces(text.strip())

    def measure(self, text: str) -> int:
        """How many they are."""
        return len(self.find_pieces(text))

    def fits(self, text: str) -> bool:
        """Whether they are no more than fit."""
        return self.measure(text) <= self.longest

    def cut(self, text: str, ends: Sequence[re.Pattern] = (_CLAUSE, _WORD)) -> list[str]:
        """Cut a text into parts that fit, as long as may be. Joined they are the text.

        A character of more subwords than fit is a part too.

        It is cut behind the first of `ends`, or else the next; where none helps, within words.
        """
        if self.fits(text):
            return [text]
        if not ends:
            return list(self._cut_word(text))
        first, *others = ends
        pieces = cut_at(text, (match.end() for match in first.finditer(text)))
        return self._fill([part for piece in pieces for part in self.cut(piece, others)])

    def _cut_word(self, text: str) -> Iterator[str]:
        start = 0
        while start < len(text):
            end = self._find_end(text, start)
            yield text[start:end]
            start = end

    def _find_end(self, text: str, start: int) -> int:
        """Where a part ends that begins there: better within no subword or character."""
        stop = min(len(text), start + self.longest * _LONGEST_SUBWORD)
        ends = range(start + 1, stop + 1)
        fit = bisect_right(ends, self.longest, key=lambda end: self.measure(text[start:end]))
        last = start + max(1, fit)
        if last == len(text):
            return last
        near = range(last, max(start, last - 2 * _LONGEST_SUBWORD), -1)
        whole = [end for end in near if may_cut(text, end) and self.fits(text[start:end])]
        pieces = self.find_pieces(text[start:stop])
        for end in whole:
            beginning = self.find_pieces(text[start:end])
            if beginning == pieces[: len(beginning)]:
                return end
        return whole[0] if whole else last

    def _fill(self, parts: list[str]) -> list[str]:
        """Join neighbours as long as they fit together."""
        # There may be very many without subwords, so they are joined at once.
        runs = groupby(parts, key=lambda part: self.measure(part) == 0)
        parts = [part for blank, run in runs for part in (["".join(run)] if blank else run)]
        filled, room = [], -1
        for part in parts:
            size = self.measure(part)
            # Subwords do not reach over white space; without any, the sum need not hold.
            if size <= room and (
                filled[-1][-1].isspace() or part[0].isspace() or self.fits(filled[-1] + part)
            ):
                filled[-1] += part
                room -= size
            else:
                filled.append(part)
                room = self.longest - size
        return filled
