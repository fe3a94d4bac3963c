"""Translations: what is found for a text, and how its parts become one again."""

from dataclasses import dataclass, field

import numpy as np

from resmlp_mt.data.sentences import parts_sentences_by_blanks
from resmlp_mt.inference.segments import Segment, find_spaces

MOSTLY = 0.5  # of a text's characters unknown: its translation is made up


@dataclass(eq=False)
class Attention:
    """Where the last layer of the decoder looks in the source, averaged over its heads.

    `source` and `target` are subwords with the end of the sentence; `weights`, (T, S), has a row
    for each of the target's, which sums to 1.
    """

    source: list[str]
    target: list[str]
    weights: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attention):
            return NotImplemented
        alike = self.source == other.source and self.target == other.target
        return alike and np.array_equal(self.weights, other.weights)


@dataclass
class Hypothesis:
    """A translation and its score: mean log-probability (base e) of its subwords.

    `attention`, if it was asked for, is one of each part of the line that was translated at once:
    mostly of the whole. `unknown` is the share of the source's characters that the model never saw.
    """

    text: str
    score: float
    attention: list[Attention] = field(default_factory=list, repr=False)
    unknown: float = field(default=0.0, repr=False)


def explain_unknown(text: str) -> str:
    """What to say of the first text of which more than `MOSTLY` is unknown."""
    start = f"{text.strip():.20}"
    return (
        f"the model never saw most characters of this ({start} ...); its translation has "
        "nothing to do with it. Further ones are not named"
    )


def join(
    parts: list[list[Hypothesis]],
    segments: list[Segment],
    language: str,
    before: Hypothesis | None = None,
) -> list[Hypothesis]:
    """Put a text together: its k-th translation from the k-th of every part.

    Args:
        parts: The translations of what `Translator.split` returned.
        segments: What it returned; the white space between the parts is taken from there.
        language: Of the translation.
        before: The translation of what comes before the segments, with the white space behind it.
            Its score does not count.
    """
    if not parts:
        return [Hypothesis("", 0.0)]
    spaces = find_spaces(segments, " " if parts_sentences_by_blanks(language) else "")
    if before:
        spaces[0] = before.text
    return [
        Hypothesis(
            spaces[0] + "".join(h.text + space for h, space in zip(kth, spaces[1:], strict=True)),
            sum(hypothesis.score for hypothesis in kth) / len(kth),
            [
                attention
                for hypothesis in ([before, *kth] if before else kth)
                for attention in hypothesis.attention
            ],
        )
        for kth in zip(*parts, strict=False)  # as many as the part with the fewest
    ]
