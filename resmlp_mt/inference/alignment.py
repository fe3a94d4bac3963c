"""Hard alignments from attention: the source of each part of a translation."""

from collections.abc import Sequence
from itertools import accumulate

_SPACE = "▁"  # what SentencePiece writes for the space before a word


def align_subwords(attentions: Sequence) -> list[tuple[int, int]]:
    """A pair for each subword of a translation: the source subword it looks at most, and itself.

    Args:
        attentions: Of the parts of a line, `Attention` each.

    Returns:
        Places counted from 0 over all parts, ends of sentences not counted: fairseq's hard
        alignment.
    """
    pairs, source, target = [], 0, 0
    for attention in attentions:
        weights = attention.weights[:-1, :-1]
        pairs += [(source + s, target + t) for t, s in enumerate(weights.argmax(1).tolist())]
        source, target = source + weights.shape[1], target + weights.shape[0]
    return pairs


def align_words(attentions: Sequence) -> list[tuple[int, int]]:
    """Which words those subwords belong to: each pair once, by the words of the translation.

    Words are what stands between spaces, counted from 0.
    """
    sources, targets = (
        _number_words([word for a in attentions for word in getattr(a, side)[:-1]])
        for side in ("source", "target")
    )
    pairs = {(targets[t], sources[s]) for s, t in align_subwords(attentions)}
    return [(s, t) for t, s in sorted(pairs)]


def _number_words(subwords: list[str]) -> list[int]:
    """The word of each subword. The first subword always begins a word."""
    begins = [i == 0 or word.startswith(_SPACE) for i, word in enumerate(subwords)]
    return [count - 1 for count in accumulate(begins)]
