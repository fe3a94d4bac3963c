"""The beginning of a single sentence's translation, the words that it must hold, its samples."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from resmlp_mt.errors import LineError, UserError


@dataclass(frozen=True, eq=False)
class Guide:
    """The prefix, the words to hold and the number of one sentence, for its search.

    Attributes:
        prefix: Token indices that its translation begins with. (P,).
        constraints: Token indices of each text that its translation holds, without a gap.
        number: Of the line, and of the part in it. With the seed it decides the samples.
    """

    prefix: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    constraints: tuple[np.ndarray, ...] = ()
    number: tuple[int, ...] = (0,)

    @property
    def leads(self) -> bool:
        """Whether a translation must hold something."""
        return bool(len(self.prefix) or self.constraints)


def check_room(guides: list[Guide], longest: int) -> None:
    """Check that prefixes and constraints fit into translations of `longest` subwords.

    Raises:
        UserError: If one does not.
    """
    for guide in guides:
        for what, tokens in (
            ("a prefix", len(guide.prefix)),
            ("constraints", sum(map(len, guide.constraints))),
        ):
            if tokens > longest:
                said = f"{what} of {tokens} subwords; a translation has {longest} at most"
                raise blame([guide], said)


def blame(guides: Iterable[Guide], problem: str) -> UserError:
    """An error about guides, which names their lines, but not line 0: the line of a request."""
    numbers = sorted({guide.number[0] for guide in guides if guide.leads} - {0})
    return LineError(numbers, problem) if numbers else UserError(problem)
