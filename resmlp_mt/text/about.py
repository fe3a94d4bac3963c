"""Knowledge that rules have of the text that they read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resmlp_mt.text.punctuation import Place


class Model(Protocol):
    """A model to the rules: its languages, its text, and the characters it was trained on."""

    source_language: str
    target_language: str
    card: Any

    def split(self, text: str) -> Sequence[str]:
        """The subwords of a text, without white space around it."""

    def knows(self, character: str) -> bool:
        """Whether it ever saw a character."""

    def knows_script(self, letter: str) -> bool:
        """Whether it ever saw a letter of the same script."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """The translation of a term: text, the indices of its tokens, whether it must be held."""

    text: str
    tokens: Any
    must: bool = True


# Finds terms of a glossary in a text, which may be in capitals. It tells where each stands, or None
# where only a search can hold it.
FindTerms = Callable[[str, bool], Sequence[tuple[Wanted, Place | None]]]


@dataclass(frozen=True)
class About:
    """Facts about a text that is translated at once.

    Attributes:
        languages: Of source and target.
        model: What translates it.
        is_item: Whether the text needs no final stop, as a heading, an item or a row.
        begins: Whether its line begins with the text.
        tries: How often it was translated before, and lost something each time.
        symbols: Tokens of a special meaning that its line begins with, as "<2de>".
        find_terms: Finds what is wanted, if anything is.
    """

    languages: tuple[str, str]
    model: Model
    is_item: bool = False
    begins: bool = True
    tries: int = 0
    symbols: str = ""
    find_terms: FindTerms | None = None

    @property
    def careful(self) -> bool:
        """Whether more gets a name than usual, and other names: the second time, not the third."""
        return self.tries == 1
