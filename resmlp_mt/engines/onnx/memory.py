"""Keys and values of the sources, as the graphs of ONNX Runtime take them."""

from dataclasses import dataclass

import numpy as np

_FAR_BELOW = np.float32(-1e9)


@dataclass(frozen=True)
class GraphMemory:
    """What the decoder attends to. Shapes as in `translation_graphs.py`.

    Attributes:
        values: Keys and values of each layer in turn. (2 D, B, E, S, C / E).
        mask: What the step adds to the scores. (B, 1, 1, S).
    """

    values: np.ndarray
    mask: np.ndarray

    @classmethod
    def hide(cls, values: np.ndarray, real: np.ndarray) -> "GraphMemory":
        """Keys and values, of which nobody shall look at the padding.

        Args:
            values: (2 D, B, E, S, C / E).
            real: Where tokens are no padding. (B, S).
        """
        return cls(values, np.where(real, np.float32(0), _FAR_BELOW)[:, None, None])

    def keep(self, sentences: np.ndarray) -> "GraphMemory":
        """The same for some of the sentences. Their indices."""
        return GraphMemory(self.values[:, sentences], self.mask[sentences])

    def feed(self, beams: int) -> dict[str, np.ndarray]:
        """Inputs of the step, by name, where each sentence has so many beams."""
        feed = {"mask": np.repeat(self.mask, beams, axis=2)}
        feed |= {f"key_{layer}": keys for layer, keys in enumerate(self.values[::2])}
        return feed | {f"value_{layer}": values for layer, values in enumerate(self.values[1::2])}
