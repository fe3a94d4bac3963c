"""Prefixes and words beside lines, which lead their translations."""

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import repeat
from reprlib import repr as shorten

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.guides import Guide
from resmlp_mt.errors import LineError, UserError
from resmlp_mt.text.code import join_code
from resmlp_mt.text.dividing import LINE_ENDS, cut_lines
from resmlp_mt.text.segments import Segment
from resmlp_mt.text.sentences import parts_sentences_by_blanks, split_sentences
from resmlp_mt.text.surrogates import mend_surrogates

# A line, the beginning of its translation, and the words that its translation shall hold.
Row = tuple[str, str, Sequence[str]]


def check_beside(lines: object, prefix: object, words: object) -> None:
    """Check prefixes and words at once, as far as they can be before the lines are read.

    Raises:
        ValueError: If they are no text or list, or more than the lines.
    """
    known = 1 if isinstance(lines, str) else len(lines) if isinstance(lines, Sized) else math.inf
    for name, given in (("prefix", prefix), ("words", [] if words is None else words)):
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise ValueError(f"{name} {shorten(given)} must be one for each line")
        listed = isinstance(given, Sized) and not isinstance(given, str)
        if listed and len(given) > known:
            raise ValueError(f"{name}: {len(given)} for {known} lines")


def lay_beside(
    lines: Iterable[str], prefix: str | Iterable[str], words: Iterable[Sequence[str]] | None
) -> Iterator[Row]:
    """Yield each line with its prefix and its words; a single prefix is that of all lines.

    Raises:
        ValueError: If there are fewer prefixes, or fewer lists of words, than lines; or one is
            something else.
    """
    prefixes = repeat(prefix) if isinstance(prefix, str) else iter(prefix)
    words = repeat(()) if words is None else iter(words)
    none = object()
    for number, line in enumerate(lines, 1):
        begin, held = next(prefixes, none), next(words, none)
        for name, given in ("prefix", begin), ("words", held):
            if given is none:
                raise ValueError(f"{name}: none for line {number}")
        if not isinstance(begin, str):
            raise ValueError(f"prefix: a text for line {number}, not {shorten(begin)}")
        # An iterator yields once.
        texts = [*held] if isinstance(held, Iterable) and not isinstance(held, str) else [None]
        if not all(isinstance(word, str) for word in texts):
            raise ValueError(f"words: a list of texts for line {number}, not {shorten(held)}")
        begin, *texts = map(mend_surrogates, [begin, *texts])
        # Blank ones lead nothing.
        yield line, begin if begin.strip() else "", [word for word in texts if word.strip()]


@dataclass(frozen=True)
class Line:
    """A line of the input, with the prefix and the words of its translation.

    Attributes:
        text: As it was given.
        segments: Its parts, each translated at once.
        kept: Translations of the first parts, one each, as a prefix has them.
        prefix: The beginning of the translation of the next part.
        words: Texts that the translation shall hold.
    """

    text: str
    segments: list[Segment]
    kept: Sequence[str]
    prefix: str
    words: Sequence[str]

    @property
    def left(self) -> list[Segment]:
        """The parts that have no translation yet."""
        return self.segments[len(self.kept) :]


def divide_begun(prefix: str, parts: list[Segment], language: str) -> tuple[list[str], str]:
    """Divide a prefix into translations of whole parts of a text, and the beginning of the next.

    Its finished lines translate the first lines of the text; its finished sentences behind them,
    the first sentences of the next line. A block of code is a line. `language`: Of the prefix.

    Returns:
        The translations of the first parts, one each, and the rest of the prefix.
    """
    if not prefix or len(parts) < 2:
        return [], prefix
    # One more letter shows where text would go on: in its last line and sentence, or in new ones.
    *finished, _ = (line for line, _ in join_code(_split_lines(f"{prefix}X")))
    *before, last = _group_lines(parts)
    kept: list[str] = []
    for line, of_line in zip(finished, before, strict=False):
        kept += _lay_out(split_sentences(line, language), len(of_line))
    going_on = [*before, last][min(len(finished), len(before))]
    rest = prefix[sum(map(len, kept)) :]
    sentences = split_sentences(f"{rest}X", language)[:-1]
    if parts_sentences_by_blanks(language) and sentences and not sentences[-1][-1].isspace():
        sentences.pop()  # its full stop may be that of a number
    kept += sentences[: len(going_on) - 1]
    return kept, prefix[sum(map(len, kept)) :]


def _lay_out(sentences: list[str], count: int) -> list[str]:
    """Sentences in `count` texts: the last takes all further ones; missing ones are empty."""
    laid = [*sentences[: count - 1], "".join(sentences[count - 1 :])]
    return laid + [""] * (count - len(laid))


def make_guides(codec: TextCodec, lines: list[Line], first: int) -> list[Guide]:
    """A guide for every part of the lines that has no translation yet.

    The prefix of a line goes to the first such part that is no code. Each has the words of its
    line. The first line has the number `first`.

    Raises:
        UserError: If the model has no subwords for a prefix or a word, or a line that has words to
            hold is in several parts.
    """
    guides = []
    for number, line in enumerate(lines, first):
        try:
            if line.words and len(_group_lines(line.left)) > 1:
                raise UserError("holds several lines; constraints are for one")
            if line.words and len(line.left) > 1:
                raise UserError("too long for the model to hold constraints; shorten it")
            begin = codec.encode_target(line.prefix)
            held = tuple(filter(len, map(codec.encode_held, line.words)))
        except UserError as error:
            raise LineError([number], str(error)) from None
        for i, segment in enumerate(line.left):
            if not segment.pieces:  # it stays as it is
                guides.append(Guide(number=(number, i)))
                continue
            guides.append(Guide(begin, held, (number, i)))
            begin = begin[:0]
    return guides


def _split_lines(text: str) -> list[str]:
    """The lines of a text, each with its end and the blank lines around it."""
    lines: list[str] = []
    for line in cut_lines(text):
        if lines and not (line.strip() and lines[-1].strip()):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def _group_lines(segments: list[Segment]) -> list[list[Segment]]:
    """The segments of each line of a text."""
    lines: list[list[Segment]] = [[]]
    for number, segment in enumerate(segments, 1):
        lines[-1].append(segment)
        behind = segment.text[len(segment.text.rstrip()) :]
        if any(end in behind for end in LINE_ENDS) and number < len(segments):
            lines.append([])
    return lines
