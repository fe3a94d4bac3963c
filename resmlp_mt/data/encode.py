"""Blocks of parallel text as numbers of subwords."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece

from resmlp_mt.data.filters import Limits, find_kept
from resmlp_mt.data.reading import Block
from resmlp_mt.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class Side:
    """One language of a block.

    A subword has the number that its SentencePiece model gives it. The end of a sentence has the
    number behind the last of these. Symbols that only the dictionary knows come behind that, by
    their indices.

    Attributes:
        numbers: Of all sentences, one after the other, with their ends. int32.
        sizes: How many each sentence has. int32.
        counts: How often each number occurs.
    """

    numbers: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Encoded:
    """A block: its two sides, and how many pairs were dropped for which reason."""

    sides: tuple[Side, Side]
    dropped: dict[str, int]


@dataclass
class Totals:
    """The files of `write_numbers`, all blocks together.

    Attributes:
        kept, dropped: Pairs.
        lengths: Of each side, how many sentences have 0, 1, 2 ... subwords, without their ends.
        counts: Of each side, as `Side` has them.
    """

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    lengths: list[np.ndarray] = field(default_factory=list)
    counts: list[np.ndarray] = field(default_factory=list)


class Encoder:
    """Cuts the lines of a block into subwords, in whatever process.

    Args:
        models: SentencePiece models of source and target.
        dictionaries: Theirs, if they are known. They may have symbols that are no subwords.
        limits: Drop pairs beyond them.
    """

    def __init__(
        self,
        models: Sequence[sentencepiece.SentencePieceProcessor],
        dictionaries: Sequence[Vocabulary] | None,
        limits: Limits | None,
    ):
        self._models, self._limits = models, limits
        self._dictionaries = dictionaries or [None, None]

    def __call__(self, block: Block) -> Encoded:
        """Encode a block.

        Raises:
            UserError: If a line is not UTF-8.
        """
        sides, limits = block.decode(), self._limits
        too_long = [np.array([bool(limits) and limits.is_too_long(x) for x in s]) for s in sides]
        for lines, long in zip(sides, too_long, strict=True):
            for i in np.flatnonzero(long):
                lines[i] = ""
        found = [
            self._encode(*side)
            for side in zip(self._models, self._dictionaries, sides, strict=True)
        ]
        kept, dropped = np.ones(len(block), bool), {}
        if limits:
            source, target = (
                np.where(long, limits.max_length + 1, sizes)
                for long, (_, sizes) in zip(too_long, found, strict=True)
            )
            kept, dropped = find_kept((source, target), limits)
        source, target = (
            self._finish(model, numbers, sizes, kept)
            for model, (numbers, sizes) in zip(self._models, found, strict=True)
        )
        return Encoded((source, target), dropped)

    @staticmethod
    def _encode(
        model: sentencepiece.SentencePieceProcessor,
        dictionary: Vocabulary | None,
        lines: list[str],
    ) -> tuple[np.ndarray, np.ndarray]:
        # The other cores have blocks of their own.
        encoded = model.encode(lines, out_type=int, num_threads=1)
        sizes = np.fromiter(map(len, encoded), np.int32, len(encoded))
        numbers = np.fromiter(chain.from_iterable(encoded), np.int32, sizes.sum())
        if dictionary is not None:
            starts = np.cumsum(sizes) - sizes
            unknown = np.flatnonzero(numbers == model.unk_id())
            for i in np.unique(np.searchsorted(starts, unknown, side="right") - 1):
                for place, piece in enumerate(model.encode(lines[i], out_type=str), starts[i]):
                    known = dictionary.indices.get(piece)
                    if numbers[place] == model.unk_id() and known is not None:
                        numbers[place] = model.get_piece_size() + 1 + known
        return numbers, sizes

    @staticmethod
    def _finish(
        model: sentencepiece.SentencePieceProcessor,
        numbers: np.ndarray,
        sizes: np.ndarray,
        kept: np.ndarray,
    ) -> Side:
        numbers, sizes = numbers[np.repeat(kept, sizes)], sizes[kept]
        numbers = np.insert(numbers, np.cumsum(sizes), model.get_piece_size())
        return Side(numbers, sizes + np.int32(1), np.bincount(numbers))


def find_indices(model: sentencepiece.SentencePieceProcessor, dictionary: Vocabulary) -> np.ndarray:
    """The index in a dictionary of each number that an `Encoder` gives."""
    pieces = [dictionary.index(model.id_to_piece(i)) for i in range(model.get_piece_size())]
    return np.array([*pieces, dictionary.eos(), *range(len(dictionary))])


def write_numbers(blocks: Iterable[Encoded], paths: Sequence[Path]) -> Totals:
    """Write the numbers of each side to PATH.numbers, and the sizes of sentences to PATH.sizes."""
    none = np.zeros(1, np.int64)
    totals = Totals(lengths=[none] * len(paths), counts=[none] * len(paths))
    with ExitStack() as stack:
        streams = [
            [stack.enter_context(open(f"{path}.{kind}", "wb")) for kind in ("numbers", "sizes")]
            for path in paths
        ]
        for block in blocks:
            totals.kept += len(block.sides[0].sizes)
            for reason, count in block.dropped.items():
                totals.dropped[reason] = totals.dropped.get(reason, 0) + count
            for i, (side, (numbers, sizes)) in enumerate(zip(block.sides, streams, strict=True)):
                numbers.write(side.numbers.tobytes())
                sizes.write(side.sizes.tobytes())
                totals.lengths[i] = _add(totals.lengths[i], np.bincount(side.sizes - 1))
                totals.counts[i] = _add(totals.counts[i], side.counts)
    return totals


def _add(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    short, long = sorted((one, other), key=len)
    total = long.copy()
    total[: len(short)] += short
    return total
