"""Which subwords may translate which, learned from parallel text by IBM's model 1.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.errors import UserError
from resmlp_mt.export.parallel_text import ParallelText, encode_pair

_ROUNDS = 5  # of expectation maximization
_PAIRS = 10**7  # of subwords that are looked at together: 1 GB
_LEAST = 1e-4  # of the probability that a subword gives to another; what is below is noise


@dataclass(frozen=True)
class ShortlistText:
    """Text to learn a shortlist from, and how long that is to be.

    Attributes:
        text: The files.
        best: Target subwords of each source subword, at most.
        first: Most frequent target subwords, which every sentence has.
    """

    text: ParallelText
    best: int = 200
    first: int = 100


def learn_shortlist(text: ShortlistText, codec: TextCodec) -> dict[str, np.ndarray]:
    """The arrays of a `Shortlist`.

    A subword has itself among its translations where the target has it too, so that names can be
    copied. One that is not in the text has none.

    Raises:
        UserError: If the files cannot be read, differ in length, or have no words.
    """
    end, unknown = codec.target_dictionary.eos(), codec.target_dictionary.unk()
    sizes = len(codec.source_dictionary), len(codec.target_dictionary)
    frequency = np.zeros(sizes[1], np.int64)
    keys, counts = np.empty(0, np.int64), np.empty(0)
    for block in _read_blocks(text, codec):
        for _, target in block:
            np.add.at(frequency, target, 1)
        more, expected = _count_pairs(block, sizes[1])
        keys, places = np.unique(np.concatenate([keys, more]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, expected]))
    if not len(keys):
        raise UserError(f"{text.text}: no words to learn a shortlist from")
    frequency[[end, unknown]] = 0
    common = np.argsort(-frequency, kind="stable")[: text.first]
    always = np.unique([end, *common[frequency[common] > 0]])
    rows = _take_best(keys // sizes[1], keys % sizes[1], counts, text.best)
    own = {i: codec.target_dictionary.index(codec.source_dictionary[i]) for i in rows}
    lists = [np.unique([*rows[i], own[i]]) if i in rows else [] for i in range(sizes[0])]
    symbols = [np.setdiff1d(row, [unknown]) for row in lists]
    return {
        "always": always.astype(np.int32),
        "starts": np.cumsum([0, *map(len, symbols)], dtype=np.int32),
        "symbols": np.concatenate(symbols).astype(np.int32),
    }


def _read_blocks(text: ShortlistText, codec: TextCodec) -> Iterator[list[tuple]]:
    """Yield sentences in blocks, each sentence as its two sets of subwords."""
    block, pairs = [], 0
    for pair in text.text.read():
        source, target = map(np.unique, encode_pair(pair, codec))
        if len(source) and len(target):
            block.append((source, target))
            pairs += len(source) * len(target)
        if pairs > _PAIRS:
            yield block
            block, pairs = [], 0
    if block:
        yield block


def _count_pairs(block: Iterable[tuple], symbols: int) -> tuple[np.ndarray, np.ndarray]:
    """How often subwords are expected to translate each other: keys s V + t, and the numbers."""
    pairs, words, said = [], [], 0
    for source, target in block:
        pairs.append((source[:, None] * symbols + target).ravel())
        words.append(np.tile(np.arange(said, said + len(target)), len(source)))
        said += len(target)
    keys, pairs = np.unique(np.concatenate(pairs), return_inverse=True)
    words, sources = np.concatenate(words), keys // symbols
    p = np.ones(len(keys))
    for _ in range(_ROUNDS):
        share = p[pairs]
        share /= np.bincount(words, share)[words]
        counts = np.bincount(pairs, share)
        p = counts / np.bincount(sources, counts)[sources]
    kept = p > _LEAST
    return keys[kept], counts[kept]


def _take_best(
    sources: np.ndarray, targets: np.ndarray, counts: np.ndarray, best: int
) -> dict[int, np.ndarray]:
    """The targets with the highest counts of each source."""
    order = np.lexsort((-counts, sources))
    sources, targets = sources[order], targets[order]
    names, starts = np.unique(sources, return_index=True)
    rows = np.split(targets, starts[1:])
    return {int(name): row[:best] for name, row in zip(names, rows, strict=True)}
