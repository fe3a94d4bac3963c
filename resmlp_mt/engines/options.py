"""Options of a search, and how numbers among them are checked."""

import sys
from dataclasses import dataclass
from numbers import Integral, Real
from reprlib import repr as shorten

FROM_0, FROM_1 = "must be a whole number, 0 or more", "must be a whole number, 1 or more"
TRUE_OR_FALSE = "must be True or False"
# More than any model has positions.
_ANY_LENGTH = 10**9


@dataclass(frozen=True)
class SearchOptions:
    """The options of one search, by fairseq's names.

    Attributes:
        beam: Hypotheses kept in the search; samples, where it samples. None stands for 5, or for
            `nbest` where it samples.
        nbest: Translations returned for each text, at most `beam`; where it samples, all.
        lenpen: Exponent of the length that scores are divided by, from -10 to 10; above 1 favours
            long ones.
        max_len_a, max_len_b: A translation has at most `max_len_a` x + `max_len_b` subwords, its
            end not counted, where x are the source's with its end; and never more than fit the
            model.
        no_repeat_ngram_size: No sequence of so many subwords comes twice in a translation; 0 allows
            all.
        sampling: Draw each subword with the probability that the model gives it.
        sampling_topk: Draw from this many of the likeliest subwords only.
        sampling_topp: Draw from the fewest subwords whose probabilities sum to this.
        temperature: Divides the model's logits, 0.001 or more. Below 1 it makes likely subwords
            likelier.
        seed: Decides what is drawn, together with the number of a text.
        constraints: Whether the words that a translation must hold come in the order in which they
            are given, "ordered", or in any, "unordered"; None if there are none.
        shortlist: Choose among the subwords of the shortlist where the model has one, and where a
            plain beam search is asked for.

    Raises:
        ValueError: If one of them is impossible; the message begins with its name and value.
    """

    beam: int | None = None
    nbest: int = 1
    lenpen: float = 1.0
    max_len_a: float = 0.0
    max_len_b: int = 200
    no_repeat_ngram_size: int = 0
    sampling: bool = False
    sampling_topk: int | None = None
    sampling_topp: float | None = None
    temperature: float = 1.0
    seed: int = 1
    constraints: str | None = None
    shortlist: bool = True

    def __post_init__(self):
        check, whole, number = self._check, is_count, _is_number
        check("sampling", isinstance(self.sampling, bool), TRUE_OR_FALSE)
        if self.beam is None:
            object.__setattr__(self, "beam", self.nbest if self.sampling else 5)
        check("beam", whole(self.beam, 1), FROM_1)
        said = "must be left out: with sampling, nbest says how many"
        check("beam", not self.sampling or self.beam == self.nbest, said)
        said = f"must be a whole number from 1 to the beam of {self.beam}"
        check("nbest", whole(self.nbest, 1) and self.nbest <= self.beam, said)
        # Beyond these, powers of lengths and quotients of logits are no numbers in 32 bits.
        check("lenpen", number(self.lenpen, -10, 10), "must be a number from -10 to 10")
        check("max_len_a", number(self.max_len_a), "must be a number, 0 or more")
        check("max_len_b", whole(self.max_len_b), FROM_0)
        check("max_len_b", self.max_len_a > 0 or self.max_len_b > 0, "leaves no room")
        size = self.no_repeat_ngram_size
        check("no_repeat_ngram_size", whole(size) and size != 1, "must be 0, or 2 or more")
        check("temperature", number(self.temperature, 0.001), "must be a number, 0.001 or more")
        check("seed", whole(self.seed), FROM_0)
        check("shortlist", isinstance(self.shortlist, bool), TRUE_OR_FALSE)
        for name in ("sampling_topk", "sampling_topp"):
            check(name, self.sampling or getattr(self, name) is None, "needs sampling")
        topk, topp = self.sampling_topk, self.sampling_topp
        check("sampling_topk", topk is None or whole(topk, 1), FROM_1)
        right = topp is None or number(topp, most=1) and topp > 0
        check("sampling_topp", right, "must be a number above 0 and at most 1")
        check("sampling_topp", topp is None or topk is None, "goes without sampling_topk")
        known = self.constraints in (None, "ordered", "unordered")
        check("constraints", known, "must be ordered or unordered")
        check("constraints", not (self.constraints and self.sampling), "cannot be kept by sampling")

    @property
    def is_plain(self) -> bool:
        """Whether a plain beam search does all of it."""
        return not (self.sampling or self.no_repeat_ngram_size or self.constraints) and (
            self.temperature == 1
        )

    def longest(self, source: int) -> int:
        """The most subwords of a translation, for a source of so many with its end."""
        most = min(self.max_len_a * source, _ANY_LENGTH) + min(self.max_len_b, _ANY_LENGTH)
        return max(1, int(most))

    def _check(self, name: str, right: bool, rule: str) -> None:
        if not right:
            raise ValueError(f"{name} {shorten(getattr(self, name))} {rule}")


def is_count(value: object, least: int = 0) -> bool:
    """Whether a value is a whole number, and not below the least; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and value >= least


def _is_number(value: object, least: float = 0, most: float = sys.float_info.max) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and least <= value <= most
