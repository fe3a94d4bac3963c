"""Text and its translation, which exports learn from."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError


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
        lines = zip_longest(read_lines(self.source), read_lines(self.target))
        for number, pair in enumerate(lines, 1):
            if None in pair:
                longer, shorter = (self.target, self.source)[:: 1 if pair[0] is None else -1]
                raise UserError(f"{longer} has a line {number}, {shorter} has none")
            yield pair


def encode_pair(pair: tuple[str, str], codec: TextCodec) -> tuple[np.ndarray, np.ndarray]:
    """The symbols of a source, (S,), and its translation, (T,), without the end of a sentence."""
    source, target = pair
    return codec.encode(codec.split(source))[:-1], codec.encode_translation(target)
