"""Hard alignments from attention: the source of each part of a translation."""

from collections.abc import Sequence

import numpy as np


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
        looks = weights.argmax(1).tolist() if weights.size else ()
        pairs += [(source + s, target + t) for t, s in enumerate(looks)]
        source, target = source + weights.shape[1], target + weights.shape[0]
    return pairs


def align_words(attentions: Sequence) -> list[tuple[int, int]]:
    """Which words those subwords belong to: each pair once, by the words of the translation.

    Words are what stands between white space in the two texts, counted from 0.
    """
    pairs = {
        (a.target_words[t], a.source_words[s])
        for a in attentions
        if a.target_words  # else the translation is blank
        for s, t in align_subwords([a])
    }
    return [(s, t) for t, s in sorted(pairs)]


def weigh_words(attention, targets: int, sources: int) -> np.ndarray:
    """How much each word of a translation is of each word of its source: shares. (T, S).

    A word looks where its subwords look on average, but for the end of the sentence. Punctuation
    does not count beside letters. Where several words look at one of the source, it counts most for
    the one that looks at it most.

    Args:
        attention: `Attention` of what was translated at once.
        targets, sources: How many words there are. Some may have no subword.
    """
    looks = np.zeros((targets, sources))
    said = [any(map(str.isalnum, subword)) for subword in attention.target]
    with_letters = {w for w, letters in zip(attention.target_words, said, strict=False) if letters}
    for word, letters, row in zip(attention.target_words, said, attention.weights, strict=False):
        if letters or word not in with_letters:
            np.add.at(looks[word], attention.source_words, row[: len(attention.source_words)])
    looks = _find_shares(looks, axis=1)
    return _find_shares(looks * _find_shares(looks, axis=0), axis=1)


def _find_shares(values: np.ndarray, axis: int) -> np.ndarray:
    return values / np.maximum(values.sum(axis, keepdims=True), np.finfo(float).tiny)
