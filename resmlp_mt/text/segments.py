"""Texts on their way to a model and back, and what is known of them."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from types import ModuleType
from typing import Any, Protocol

# The beginning and the end of a part of a text.
Place = tuple[int, int]
# Parts of a text that are no words.
_MARKUP = re.compile(
    r"\[[xX]\]|</?[A-Za-z][^<>]*>"
    r"|^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->.*$"  # when a subtitle is shown, and where
    r"|^\s*(?:`{3,}|~{3,})(?: ?[\w+#.-]+)?\s*$"  # around a block of code, with its language
)


def holds_text(text: str) -> bool:
    """Whether there is something to translate. Numbers, rules, emoji, boxes and tags stay."""
    return any(map(str.isalpha, _MARKUP.sub("", text)))


@dataclass(frozen=True)
class Traced:
    """A text that was made of another one.

    Attributes:
        text: As it is now.
        places: Of each character the place in the other text that it comes from. They never fall.
            A text that was put in comes from its place, and its last character from the last one
            of the text that it replaced.
    """

    text: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "Traced":
        """A text that was not changed yet."""
        return cls(text, range(len(text)))

    def replace(self, edits: Iterable[tuple[Place, str]]) -> "Traced":
        """The text with new texts in some places, which are in order and apart."""
        texts: list[str] = []
        places: list[int] = []
        done = 0
        behind = self.places[-1] + 1 if self.places else 0
        for (start, end), new in edits:
            texts += [self.text[done:start], new]
            places += self.places[done:start]
            place = self.places[start] if start < len(self.places) else behind
            places += [place] * len(new)
            if new and start < end:
                places[-1] = self.places[end - 1]
            done = end
        if not texts:
            return self
        return Traced("".join([*texts, self.text[done:]]), [*places, *self.places[done:]])

    def match_words(self, other: "Traced") -> list[int]:
        """The word of another text that each word of this one stands for.

        Words are what stands between white space, counted from 0. The other text was made of the
        same one, and has at least one word.
        """
        starts = [word.start() for word in re.finditer(r"\S+", other.text)]
        last = [word.end() - 1 for word in re.finditer(r"\S+", self.text)]
        there = [bisect_right(other.places, self.places[place]) - 1 for place in last]
        return [max(bisect_right(starts, place) - 1, 0) for place in there]


class Model(Protocol):
    """A model as the rules see it: its languages, its subwords, and the characters it knows."""

    source_language: str
    target_language: str
    card: Any

    def split(self, text: str) -> Sequence[str]:
        """The subwords of a text, without white space around it."""

    def knows(self, character: str) -> bool:
        """Whether the model ever saw a character."""

    def knows_script(self, letter: str) -> bool:
        """Whether the model ever saw a letter of the same script."""


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
        model: Of the translation.
        is_item: Whether the text needs no final stop, as a heading, an item or a row.
        begins: Whether its line begins with the text.
        tries: How often it was translated before, and lost something each time.
        symbols: Tokens of a special meaning that its line begins with, as "<2de>".
        find_terms: Finds terms of a glossary, if there is one.
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
        """Whether more words get names than usual, and other ones: at the second try alone."""
        return self.tries == 1


@dataclass(frozen=True)
class Segment:
    """A part of a source text that is translated at once.

    Attributes:
        text: With the white space around it.
        about: The facts that its rules read.
        read: As the model reads it.
        pieces: The subwords of that; none of code, and of what is too long for a word.
        memos: Each rule that took something off, in their order, its memo, and the text it left.
        stays: Whether it stays as it is: it is code, or a translation would be made up.
        rules: The rules that it was read by.
    """

    text: str
    about: About
    read: Traced
    pieces: Sequence[str] = ()
    memos: Sequence[tuple[ModuleType, Any, Traced]] = ()
    stays: bool = False
    rules: Sequence[ModuleType] = ()

    @property
    def is_translated(self) -> bool:
        """Whether there are words in it, and it does not stay as it is."""
        return not self.stays and holds_text(self.read.text)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """Terms that its translation must hold."""
        return tuple(chain(*(getattr(memo, "wanted", ()) for _, memo, _ in self.memos)))

    @property
    def held(self) -> tuple[Wanted, ...]:
        """Terms without a name, which the search must hold."""
        return tuple(chain(*(getattr(memo, "held", ()) for _, memo, _ in self.memos)))

    @property
    def names(self) -> dict[str, str]:
        """The words that names stand for in what the model reads."""
        return dict(chain(*(getattr(memo, "words", {}).items() for _, memo, _ in self.memos)))
