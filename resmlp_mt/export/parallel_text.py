"""Text and its translation, which exports learn from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.reading import pair_lines, read_lines


@dataclass(frozen=True)
class ParallelText:
    """Files of which the lines belong together."""

    source: Path
    target: Path

    def __str__(self) -> str:
        return f"{self.source}, {self.target}"

    def read(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of lines.

        Raises:
            UserError: If the files cannot be read, or differ in length.
        """
        paths = self.source, self.target
        return pair_lines(*map(read_lines, paths), paths)


def encode_pair(pair: tuple[str, str], codec: TextCodec) -> tuple[np.ndarray, np.ndarray]:
    """The symbols of a source, (S,), and its translation, (T,), without the end of a sentence."""
    source, target = pair
    return codec.encode(codec.split(source))[:-1], codec.encode_translation(target)
