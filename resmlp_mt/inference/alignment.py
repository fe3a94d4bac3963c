"""Hard alignments from attention: the source of each part of a translation."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_BLANK = "▁"  # what SentencePiece writes for one


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


def count_words(text: str, places: Iterable[int]) -> list[int]:
    """How many words of a text end before each place: the number of what stands there or next."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    return [bisect_right(ends, place) for place in places]


def number_words(text: str, found: Mapping[str, list]) -> list[int]:
    """The word of each subword of a text, by its place there.

    SentencePiece has other blanks than the text: it makes one of a part of "´", and drops some
    characters, which then belong to a subword beside them. So the last letter of a subword counts.
    A blank alone is of the word behind it, and the first bytes of a character of its word. Behind
    the last word all is of that.

    Args:
        text: What the user has.
        found: The subwords, and where each begins and ends: SentencePiece's offset mapping.

    Returns:
        A number for each subword, counted from 0; nothing for a blank text.
    """
    places = [
        end if piece == _BLANK else start + max(len(text[start:end].rstrip()) - 1, 0)
        for piece, (start, end) in zip(found["pieces"], found["offsets"], strict=True)
    ]
    last = len(text.split()) - 1
    return [min(number, last) for number in count_words(text, places)] if last >= 0 else []
