"""Parts of a text that are translated at once, and the white space between them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

from resmlp_mt.text.about import About, Wanted
from resmlp_mt.text.dividing import LINE_ENDS, holds_text
from resmlp_mt.text.punctuation import CLOSERS, COMMAS, ENDS, UNSEEN, UNSPACED
from resmlp_mt.text.rules import terms
from resmlp_mt.text.rules.names import Names
from resmlp_mt.text.traced import Traced

# Before a gap without white space. Others are within a word of a language that has blanks between
# words: within a long address.
_PARTED = re.compile(f"[{ENDS}{COMMAS}{UNSPACED}{CLOSERS}…—]")


@dataclass(frozen=True)
class Memo:
    """What a rule took off a text.

    Attributes:
        rule: The rule.
        memo: What it needs to put that back.
        left: The text that it left.
    """

    rule: ModuleType
    memo: Any
    left: Traced


@dataclass(frozen=True)
class Segment:
    """A part of a source text that is translated at once.

    Attributes:
        text: With the white space around it.
        about: What its rules know of it.
        read: As the model reads it.
        pieces: The subwords of that; none of code, and of what is too long for a word.
        memos: What each rule took off, in the order of the rules.
        stays: Whether it stays as it is: it is code, or a translation would be made up.
    """

    text: str
    about: About
    read: Traced
    pieces: Sequence[str] = ()
    memos: tuple[Memo, ...] = ()
    stays: bool = False

    @property
    def is_translated(self) -> bool:
        """Whether there are words in it, and it does not stay as it is."""
        return not self.stays and holds_text(self.read.text)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What its translation must hold for terms."""
        return self._terms.wanted if self._terms else ()

    @property
    def held(self) -> tuple[Wanted, ...]:
        """What of that has no name, so that the search must hold it."""
        return self._terms.held if self._terms else ()

    @property
    def _terms(self) -> terms.Terms | None:
        return next((memo.memo for memo in self.memos if memo.rule is terms), None)

    @property
    def names(self) -> dict[str, str]:
        """The words that names stand for in what the model reads."""
        found: dict[str, str] = {}
        for memo in self.memos:
            if isinstance(memo.memo, Names):
                found |= memo.memo.words
        return found


def split_lines(text: str) -> list[str]:
    """The lines of a text, each with its end and the blank lines around it."""
    lines: list[str] = []
    for line in re.findall(f"[^{LINE_ENDS}]*[{LINE_ENDS}]|[^{LINE_ENDS}]+", text):
        if lines and not (line.strip() and lines[-1].strip()):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def group_lines(segments: list[Segment]) -> list[list[Segment]]:
    """The segments of each line of a text."""
    lines: list[list[Segment]] = [[]]
    for segment in segments:
        lines[-1].append(segment)
        behind = segment.text[len(segment.text.rstrip()) :]
        if any(end in behind for end in LINE_ENDS) and segment is not segments[-1]:
            lines.append([])
    return lines


def find_spaces(segments: list[Segment], usual: str) -> list[str]:
    """The white space before, between and after segments.

    Args:
        segments: Of one text, in order; one at least.
        usual: What the language puts between sentences, in the place of nothing or a blank.
    """
    texts = [segment.text for segment in segments]
    before = [text[: len(text) - len(text.lstrip())] for text in texts]
    after = [text[len(text.rstrip()) :] for text in texts]
    between = []
    for x, y, (one, other) in zip(after, before[1:], pairwise(segments), strict=False):
        gap, said = x + y, [one.is_translated, other.is_translated]
        if gap:
            parted = gap in (" ", "\u3000") and any(said)
        else:
            parted = all(said) and _is_parted(one.text, other.text)
        between.append(usual if parted else gap)
    return [before[0], *between, after[-1]]


def _is_parted(before: str, after: str) -> bool:
    """Whether more than a cut within a word parts two texts."""
    last = (before.rstrip(UNSEEN) or before)[-1]
    if last in ".!?":  # within an address, a small letter or a digit follows
        return not re.match("[0-9a-z]", after)
    return bool(_PARTED.match(last))
