"""Keys and values of the sources, as the compiled code keeps them.

Shapes as in `nn/__init__.py`. Besides, D is layers of the decoder, and E heads of its attention.
"""

from dataclasses import dataclass

import numpy as np

from resmlp_mt.engines.compiled_code.code import GROUP, pad_last
from resmlp_mt.engines.onnx.memory import GraphMemory


@dataclass(frozen=True)
class NativeMemory:
    """What the decoder attends to, in float32 or float16.

    Attributes:
        keys: (D, B, E, C / E, S), S padded to groups.
        values: (D, B, E, S, C / E), C / E padded to groups.
        lengths: Of the sources, which are padded on the right. (B,).
    """

    keys: np.ndarray
    values: np.ndarray
    lengths: np.ndarray

    @classmethod
    def make_room(cls, sides: tuple[int, int, int], real: np.ndarray, kind: type) -> "NativeMemory":
        """One to fill.

        Args:
            sides: (2 D, E, C / E).
            real: Where tokens are no padding. (B, S).
            kind: Of the numbers.
        """
        (both, heads, width), (sentences, source) = sides, real.shape
        shape = both // 2, sentences, heads
        keys = np.empty((*shape, width, source + -source % GROUP), kind)
        values = np.empty((*shape, source, width + -width % GROUP), kind)
        return cls(keys, values, np.count_nonzero(real, axis=1))

    @classmethod
    def from_graph(
        cls, sides: tuple[int, int, int], real: np.ndarray, memory: np.ndarray
    ) -> "NativeMemory":
        """What the graph of the encoder answers.

        Args:
            sides, real: As for `make_room`.
            memory: (2 D, B, E, S, C / E).

        Raises:
            ValueError: If it has another shape.
        """
        (both, heads, width), (sentences, source) = sides, real.shape
        shape = both, sentences, heads, source, width
        if memory.shape != shape:
            raise ValueError(f"keys and values of {memory.shape}, not {shape}")
        keys, values = pad_last(memory[::2].swapaxes(3, 4), GROUP), pad_last(memory[1::2], GROUP)
        return cls(keys, values, np.count_nonzero(real, axis=1))

    def to_graph(self) -> GraphMemory:
        """As the graphs take it, in float32. What is padding is 0."""
        layers, sentences, heads, width, _ = self.keys.shape
        source = self.values.shape[3]
        memory = np.empty((layers, 2, sentences, heads, source, width), np.float32)
        memory[:, 0] = self.keys[..., :source].swapaxes(3, 4)
        memory[:, 1] = self.values[..., :width]
        for sentence, length in enumerate(self.lengths):
            memory[:, :, sentence, :, length:] = 0
        real = np.arange(source) < self.lengths[:, None]
        return GraphMemory.hide(memory.reshape(2 * layers, *memory.shape[2:]), real)
