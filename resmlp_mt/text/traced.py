"""A text that knows where its characters come from."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resmlp_mt.text.punctuation import Place


@dataclass(frozen=True)
class Traced:
    """A text that was made of another one.

    Attributes:
        text: As it is now.
        places: Of each character the place in the other text that it comes from. They never fall.
            What was put in comes from where it was put, and its last character from the last one
            of what it stands for.
    """

    text: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "Traced":
        """A text that nothing was done to yet."""
        return cls(text, range(len(text)))

    def replace(self, edits: Iterable[tuple[Place, str]]) -> "Traced":
        """The text with others put in places of it, which are in order and apart."""
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
        places += self.places[done:]
        return Traced("".join([*texts, self.text[done:]]), places)

    def match_words(self, other: "Traced") -> list[int]:
        """The word of another text that each word of this one stands for.

        Words are what stands between white space, counted from 0. The other text was made of the
        same one, and has at least one word.
        """
        starts = [word.start() for word in re.finditer(r"\S+", other.text)]
        last = [word.end() - 1 for word in re.finditer(r"\S+", self.text)]
        there = [bisect_right(other.places, self.places[place]) - 1 for place in last]
        return [max(bisect_right(starts, place) - 1, 0) for place in there]
