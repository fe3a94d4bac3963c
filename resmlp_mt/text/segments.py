"""Parts of a text that are translated at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from resmlp_mt.text.about import About, Wanted
from resmlp_mt.text.dividing import holds_text
from resmlp_mt.text.rules import terms
from resmlp_mt.text.rules.names import Names
from resmlp_mt.text.traced import Traced


@dataclass(frozen=True)
class Memo:
    """The marks that a rule took off a text, to be put back, and the text that it left."""

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
        rules: Those that it was read by.
    """

    text: str
    about: About
    read: Traced
    pieces: Sequence[str] = ()
    memos: tuple[Memo, ...] = ()
    stays: bool = False
    rules: Sequence[ModuleType] = ()

    @property
    def is_translated(self) -> bool:
        """Whether there are words in it, and it does not stay as it is."""
        return not self.stays and holds_text(self.read.text)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """Terms that its translation must hold."""
        return next((memo.memo.wanted for memo in self.memos if memo.rule is terms), ())

    @property
    def held(self) -> tuple[Wanted, ...]:
        """Those without a name, which the search must hold."""
        return next((memo.memo.held for memo in self.memos if memo.rule is terms), ())

    @property
    def names(self) -> dict[str, str]:
        """The words that names stand for in what the model reads."""
        found = (memo.memo.words for memo in self.memos if isinstance(memo.memo, Names))
        return {name: word for words in found for name, word in words.items()}
