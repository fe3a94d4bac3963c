"""How translations are searched for."""

import math
from dataclasses import dataclass
from numbers import Integral, Real


@dataclass(frozen=True)
class SearchOptions:
    """What one search is asked for; fairseq's names.

    Attributes:
        beam: Hypotheses kept in the search.
        nbest: Translations returned for each text, at most `beam`.
        lenpen: Exponent of the length that scores are divided by; above 1 favours long ones.
        max_len_a, max_len_b: A translation has at most `max_len_a` x + `max_len_b` subwords, its
            end not counted, where x are the source's with its end; and never more than fit the
            model.

    Raises:
        ValueError: If one of them is impossible; the message begins with its name and value.
    """

    beam: int = 5
    nbest: int = 1
    lenpen: float = 1.0
    max_len_a: float = 0.0
    max_len_b: int = 200

    def __post_init__(self):
        self._check("beam", _is_count(self.beam) and self.beam >= 1, "must be 1 or more")
        self._check(
            "nbest",
            _is_count(self.nbest) and 1 <= self.nbest <= self.beam,
            f"must be between 1 and the beam of {self.beam}",
        )
        self._check("lenpen", _is_number(self.lenpen), "must be a finite number")
        self._check(
            "max_len_a", _is_number(self.max_len_a) and self.max_len_a >= 0, "must be 0 or more"
        )
        self._check("max_len_b", _is_count(self.max_len_b), "must be 0 or more")
        self._check("max_len_b", self.max_len_a + self.max_len_b > 0, "leaves no room")

    def longest(self, source: int) -> int:
        """Most subwords of a translation, for a source of so many with its end."""
        return max(1, int(self.max_len_a * source + self.max_len_b))

    def _check(self, name: str, right: bool, rule: str) -> None:
        if not right:
            raise ValueError(f"{name} {getattr(self, name)} {rule}")


def _is_count(value) -> bool:
    return isinstance(value, Integral) and value >= 0


def _is_number(value) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
