"""The engine that searches for a `Translator`, as a protocol."""

from typing import Protocol

import numpy as np

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions

Sentences = list[np.ndarray]  # token indices, with the end of the sentence where it is a source
Guides = list[Guide] | None
Beams = list[list[tuple[np.ndarray, float]]]  # of each sentence, best first: tokens, and score


class Engine(Protocol):
    """Translates batches of token indices. Several threads may ask it at the same time.

    Attributes:
        source_positions, target_positions: N of both sides, the end of a sentence included.
        device: Where it computes, as torch names it.
    """

    source_positions: int
    target_positions: int
    device: str

    def search(self, sources: Sentences, options: SearchOptions, guides: Guides = None) -> Beams:
        """The finished hypotheses of each sentence, best first: tokens without the end, and score.

        Args:
            sources: Token indices with the end of the sentence. Each (S,).
            options: How to search. The length of translations goes by the longest source.
            guides: One for each sentence, if any sentence is led.

        Raises:
            UserError: If no translation fulfils the options and guides, or the model is broken.
        """

    def attend(self, source: np.ndarray, targets: Sentences) -> list[np.ndarray]:
        """Where the last layer looks in the source for each token, averaged over its heads.

        Args:
            source: Token indices with the end of the sentence. (S,).
            targets: Translations of it, without the end. Each (T,).

        Returns:
            Weights for the tokens of each translation and its end. Each (T + 1, S).

        Raises:
            UserError: If a translation does not fit the model, or the model is broken.
        """

    def score(self, sources: Sentences, targets: Sentences) -> np.ndarray:
        """The log-probabilities of given translations and their ends, in nats. (B,).

        Args:
            sources: Token indices with the end of the sentence. Each (S,).
            targets: A translation of each, without the end. Each (T,).

        Raises:
            UserError: If a translation does not fit the model, or the model is broken.
        """
