"""Several models that translate together."""

import numpy as np

from resmlp_mt.inference.guides import Guide
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.reference import generate


class Ensemble:
    """Searches with the mean of the models' probabilities at every step, as fairseq does.

    Args:
        engines: `ReferenceSearch` or `BeamSearch`, of models with the same dictionaries and on the
            same device.
        symbols: The target's dictionary.
        pad: What pads sources.
        device: Where the models are.
    """

    def __init__(self, engines: list, symbols, pad: int, device: str):
        self.engines, self.symbols, self.pad, self.device = engines, symbols, pad, device
        self.models = [engine.model for engine in engines]
        self.source_positions = min(engine.source_positions for engine in engines)

    def search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[tuple[np.ndarray, float]]]:
        """As `generate`."""
        models = self.models
        return generate(models, self.symbols, self.pad, self.device, sources, options, guides)

    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
        """The mean of what the models' `attend` return. Each (T + 1, S)."""
        each = [engine.attend(source, targets) for engine in self.engines]
        return [np.mean(weights, axis=0) for weights in zip(*each, strict=True)]
