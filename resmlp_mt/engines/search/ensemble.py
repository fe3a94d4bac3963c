"""Several models that translate together."""

import numpy as np

from resmlp_mt.engines.search.generator import Generator


class Ensemble(Generator):
    """Searches with the mean of the models' probabilities at every step, as fairseq does.

    Args:
        engines: `FairseqSearch` or `FoldedSearch`, of models with the same dictionaries and on the
            same device.
        symbols: The target's dictionary.
        pad: What pads sources.
    """

    def __init__(self, engines: list, symbols, pad: int):
        super().__init__([engine.model for engine in engines], symbols, pad, engines[0].device)
        self.engines = engines
        self.source_positions = min(engine.source_positions for engine in engines)

    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
        """The mean of what the models' `attend` return. Each (T + 1, S)."""
        each = [engine.attend(source, targets) for engine in self.engines]
        return [np.mean(weights, axis=0) for weights in zip(*each, strict=True)]

    def score(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
        """The mean of what the models' `score` return: that of their logarithms. (B,)."""
        return np.mean([engine.score(sources, targets) for engine in self.engines], axis=0)
