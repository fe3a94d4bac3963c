"""What rules know of the text that they read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resmlp_mt.text.punctuation import Place


class Knowledge(Protocol):
    """What a model knows of characters."""

    def knows(self, character: str) -> bool:
        """Whether it ever saw a character."""

    def knows_script(self, letter: str) -> bool:
        """Whether it ever saw a letter of the same script."""


class Wanted(Protocol):
    """What a translation shall hold for a term: text, tokens, and whether it must."""

    text: str
    tokens: Any
    must: bool


@dataclass(frozen=True)
class About:
    """What holds for a text that is translated at once.

    Attributes:
        languages: Of source and target.
        model: What it knows.
        is_item: Whether the text needs no final stop, as a heading, an item or a row.
        begins: Whether its line begins with the text.
        tries: How often it was translated before, and lost something each time.
        symbols: Tokens of a special meaning that its line begins with, as "<2de>".
        find_terms: Finds terms of a glossary in a text, which may be in capitals. It tells where
            each stands, or None where only a search can hold it.
    """

    languages: tuple[str, str]
    model: Knowledge
    is_item: bool = False
    begins: bool = True
    tries: int = 0
    symbols: str = ""
    find_terms: Callable[[str, bool], Sequence[tuple[Wanted, Place | None]]] | None = None

    @property
    def careful(self) -> bool:
        """Whether more gets a name than usual, and other names: the second time, not the third."""
        return self.tries == 1
