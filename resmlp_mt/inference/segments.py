"""Text cut into what a model translates at once."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

# Where a sentence that is too long is cut: after a clause, or else between words. Full-width
# punctuation needs no space behind it.
_CLAUSE = re.compile(r"(?<=[;:,–—])\s+|(?<=[、，；：])\s*")
_WORD = re.compile(r"\s+")


@dataclass(frozen=True)
class Segment:
    """A part of a source text that is translated at once.

    Attributes:
        text: With the white space around it.
        pieces: Its subwords.
    """

    text: str
    pieces: Sequence[str]


def split_text(
    text: str,
    cut: Callable[[str], list[str]],
    find_pieces: Callable[[str], Sequence[str]],
    longest: int,
    sentences: bool,
) -> list[Segment]:
    """Cut a text into segments of at most `longest` subwords.

    Lines are kept apart. A line is cut no further than it must be: into sentences, a sentence into
    clauses, a clause between words, a word between characters. Sentences are kept apart too;
    smaller parts fill a segment. A character of more subwords than fit loses the last of them.

    Args:
        text: Raw text.
        cut: Cuts a line into sentences that joined are the line.
        find_pieces: The subwords of a text, which is without white space around it.
        longest: Subwords that fit the model.
        sentences: Cut lines into sentences that fit as they are, too.

    Returns:
        The segments, in order; joined they are the text. None if there are no subwords in it.
    """
    find_pieces = cache(find_pieces)

    def length(part: str) -> int:
        return len(find_pieces(part.strip()))

    texts: list[str] = []
    blank = ""  # what comes before the first subword
    for line in re.findall(r".*\n|.+", text):
        for piece in cut(line) if sentences or length(line) > longest else [line]:
            if length(piece):
                first, *others = _split(piece, length, longest, (_CLAUSE, _WORD))
                texts += [blank + first, *others]
                blank = ""
            elif texts:
                texts[-1] += piece
            else:
                blank += piece
    return [Segment(part, find_pieces(part.strip())[:longest]) for part in texts]


def find_spaces(segments: list[Segment], usual: str) -> list[str]:
    """The white space before, between and after segments.

    Args:
        segments: As `split_text` returned them; one at least.
        usual: What the language puts between sentences, in the place of nothing or a blank.
    """
    texts = [segment.text for segment in segments]
    before = [text[: len(text) - len(text.lstrip())] for text in texts]
    after = [text[len(text.rstrip()) :] for text in texts]
    between = [x + y for x, y in zip(after, before[1:], strict=False)]
    return [before[0], *(usual if x in ("", " ") else x for x in between), after[-1]]


def _split(
    text: str, length: Callable[[str], int], longest: int, ends: tuple[re.Pattern, ...]
) -> list[str]:
    if length(text) <= longest:
        return [text]
    if ends:
        parts = [
            part
            for piece in _cut_after(ends[0], text)
            for part in _split(piece, length, longest, ends[1:])
        ]
        return _fill(parts, length, longest)
    middle = len(text) // 2
    if middle == 0:  # one character of more subwords than the model takes: nothing to cut
        return [text]
    halves = text[:middle], text[middle:]
    return [part for half in halves for part in _split(half, length, longest, ())]


def _cut_after(end: re.Pattern, text: str) -> list[str]:
    ends = [0, *(match.end() for match in end.finditer(text)), len(text)]
    return [text[i:j] for i, j in zip(ends, ends[1:], strict=False) if i < j]


def _fill(parts: list[str], length: Callable[[str], int], longest: int) -> list[str]:
    """Join neighbours as long as they fit together."""
    filled, room = [], 0
    for part in parts:
        size = length(part)
        # Subwords do not reach over white space; without any, the sum need not hold.
        if (
            filled
            and size <= room
            and (
                filled[-1][-1].isspace()
                or part[0].isspace()
                or length(filled[-1] + part) <= longest
            )
        ):
            filled[-1] += part
            room -= size
        else:
            filled.append(part)
            room = longest - size
    return filled
