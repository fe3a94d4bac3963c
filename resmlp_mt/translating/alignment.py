"""Attention, and alignments from it: the source of each part of a translation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.search.engine import Engine
from resmlp_mt.text.segments import Segment, Traced
from resmlp_mt.translating.hypotheses import Attention


def attend(
    codec: TextCodec, segment: Segment, translation: np.ndarray, engine: Engine
) -> Attention:
    """Where a translation, token indices, looks in its source.

    Words are those of the texts that the model reads and writes.
    """
    source = codec.encode(segment.pieces)
    subwords, words = codec.name_source(source), _number_words(codec, segment)
    target = [*codec.name_target(translation), subwords[-1]]
    (weights,) = engine.attend(source, [translation])
    return Attention(subwords, target, weights, words, codec.number_target_words(translation))


def attend_itself(codec: TextCodec, segment: Segment) -> Attention:
    """The attention of a segment that is its own translation: each subword looks at itself."""
    subwords = codec.name_source(codec.encode(segment.pieces))
    words = _number_words(codec, segment, Traced.of(segment.text))
    return Attention(subwords, subwords, np.eye(len(subwords)), words, words)


def as_typed(
    codec: TextCodec, attention: Attention, segment: Segment, said: str, done: Traced
) -> Attention:
    """The attention of `attend`, its words counted in the texts that the user has.

    The translation is `said` as the model wrote it, and `done` as the user gets it.
    """
    if not attention.target_words:
        return attention
    there = Traced.of(said).match_words(done) if done.text.strip() else []
    return replace(
        attention,
        source_words=_number_words(codec, segment, Traced.of(segment.text)),
        target_words=[there[word] for word in attention.target_words] if there else [],
    )


def _number_words(codec: TextCodec, segment: Segment, text: Traced | None = None) -> list[int]:
    """The number of each subword's word: in the text as the model reads it, or in `text`."""
    # A segment that was too long lacks its last subwords.
    words = codec.number_source_words(segment.read.text)[: len(segment.pieces)]
    there = segment.read.match_words(text) if text else range(len(segment.read.text.split()))
    return [there[word] for word in words]


def align_subwords(attentions: Sequence[Attention]) -> list[tuple[int, int]]:
    """A pair for each subword of a translation: the source subword it looks at most, and itself.

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


def align_words(attentions: Sequence[Attention]) -> list[tuple[int, int]]:
    """The words of the pairs of `align_subwords`: each pair once, in the translation's order.

    Words are what stands between white space in the two texts, counted from 0.
    """
    pairs = {
        (a.target_words[t], a.source_words[s])
        for a in attentions
        if a.target_words  # else the translation is blank
        for s, t in align_subwords([a])
    }
    return [(s, t) for t, s in sorted(pairs)]


def weigh_words(attention: Attention, targets: int, sources: int) -> np.ndarray:
    """The shares of the source's words in each word of a translation. (T, S).

    A word looks where its subwords look on average, but for the end of the sentence. Punctuation
    does not count beside letters. Where several words look at one of the source, it counts most for
    the one that looks at it most.

    Args:
        attention: Of a segment.
        targets, sources: How many words the texts have. Some may have no subword.
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
