"""Lines that are too long for the model, cut where it hurts least and joined again."""

import re
from collections.abc import Callable

# Where to cut, best first: after a sentence, after a clause, between words. Quotes and brackets
# stay with the sentence that they close.
_CUTS = (
    re.compile(r"""(?<=[.!?…。！？])["'”’»)\]]*\s+"""),
    re.compile(r"(?<=[;:,–—、，；])\s+"),
    re.compile(r"\s+"),
)


def split_line(line: str, length: Callable[[str], int], longest: int) -> list[str]:
    """Cut a line into segments of at most `longest` subwords.

    Only what is too long is cut: a line into sentences, a sentence into clauses, a clause between
    words, a word between characters. Sentences are kept apart; smaller parts fill a segment.

    Args:
        line: Raw text.
        length: Counts the subwords of a text.
        longest: Subwords that fit the model.

    Returns:
        The segments, in order. A single one if the line fits.
    """
    return _split(line, length, longest, level=0)


def _split(text: str, length: Callable[[str], int], longest: int, level: int) -> list[str]:
    if length(text) <= longest:
        return [text]
    if level == len(_CUTS):
        middle = len(text) // 2
        if middle == 0:  # one character of more subwords than the model takes: nothing to cut
            return [text]
        return [
            part
            for half in (text[:middle], text[middle:])
            for part in _split(half, length, longest, level)
        ]
    parts = [
        part
        for piece in _cut(text, _CUTS[level])
        for part in _split(piece, length, longest, level + 1)
    ]
    return parts if level == 0 else _fill(parts, length, longest)


def _cut(text: str, pattern: re.Pattern) -> list[str]:
    ends = [match.end() for match in pattern.finditer(text)]
    pieces = [text[i:j].strip() for i, j in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if piece]


def _fill(parts: list[str], length: Callable[[str], int], longest: int) -> list[str]:
    """Join neighbours as long as they fit together."""
    filled, room = [], 0
    for part in parts:
        size = length(part)
        if filled and size <= room:
            filled[-1] += " " + part
            room -= size
        else:
            filled.append(part)
            room = longest - size
    return filled
