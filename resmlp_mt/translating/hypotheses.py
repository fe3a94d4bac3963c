"""Translations of a text, joined from those of its parts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from unicodedata import category

import numpy as np
import regex

from resmlp_mt.data.codec import count_words
from resmlp_mt.text.dividing import LINE_ENDS
from resmlp_mt.text.punctuation import CLOSERS, COMMAS, ENDS, UNSEEN, UNSPACED
from resmlp_mt.text.segments import Segment
from resmlp_mt.text.sentences import parts_sentences_by_blanks

# Characters behind which a text may end without white space. Behind others a word was cut, in a
# language that has blanks between words: a long address.
_PARTED = regex.compile(f"(?V1)[{ENDS}{COMMAS}{UNSPACED}{CLOSERS}…—]")
_MOSTLY = 0.5  # of a text's characters unknown: its translation may be made up


@dataclass(eq=False)
class Attention:
    """Where the last layer of the decoder looks in the source, averaged over its heads.

    `source` and `target` are subwords with the end of the sentence; `weights`, (T, S), has a row
    for each of the target's, which sums to 1.

    `source_words` and `target_words` number the words of the subwords, but not of the end. A word
    stands between white space in the text, counted from 0. A blank translation has none.
    """

    source: list[str]
    target: list[str]
    weights: np.ndarray
    source_words: list[int]
    target_words: list[int]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attention):
            return NotImplemented
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))


@dataclass
class Hypothesis:
    """A translation and its score: mean log-probability (base e) of its subwords.

    `attention`, if it was asked for, has one for each part of the line that was translated at once:
    mostly of the whole. `unknown` is the share of the source's characters that the model never saw.
    `lost` says that a part stays as it is, since each translation of it lost a number or a name.
    """

    text: str
    score: float
    attention: list[Attention] = field(default_factory=list, repr=False)
    unknown: float = field(default=0.0, repr=False)
    lost: bool = field(default=False, repr=False)


def explain_doubt(text: str, best: Hypothesis) -> str | None:
    """The warning for the first text that is mostly unknown, or lost something; else None."""
    start = f"{text.strip():.20}"
    if best.lost:
        return (
            f"no translation keeps all numbers and names of a sentence of this ({start} ...), "
            "which stays as it is. Further ones are not named"
        )
    if best.unknown > _MOSTLY:
        return (
            f"the model never saw most characters of this ({start} ...); they stay as they are, or "
            "the translation is made up. Further ones are not named"
        )
    return None


def join(
    text: str,
    parts: list[list[Hypothesis]],
    segments: list[Segment],
    language: str,
    before: Sequence[Hypothesis] = (),
) -> list[Hypothesis]:
    """Put a text together: its k-th translation from the k-th of every part.

    Args:
        text: The source. It stays as it is where the model has no subwords for it. Of blanks and
            control characters alone only the line ends stay.
        parts: The translations of each segment, but for those of `before`.
        segments: Of the text, from `Translator.split`.
        language: Of the translation.
        before: The translations of the first segments, with the white space behind each. Their
            scores do not count.
    """
    if not parts:
        if all(letter.isspace() or category(letter) == "Cc" for letter in text):  # controls
            text = "".join(letter for letter in text if letter in LINE_ENDS)
        return [Hypothesis(text, 0.0)]
    usual = " " if parts_sentences_by_blanks(language) else ""
    first, *spaces = _find_spaces(segments[len(before) :], usual)
    sources, begun = [segment.text for segment in segments], [h.text for h in before]
    joined = []
    for kth in zip(*parts, strict=False):  # as many as the part with the fewest
        texts = begun + [h.text + space for h, space in zip(kth, spaces, strict=True)]
        if not before:
            texts[0] = first + texts[0]
        score = sum(hypothesis.score for hypothesis in kth) / len(kth)
        attention = _join_attention([*before, *kth], sources, texts)
        lost = any(hypothesis.lost for hypothesis in kth)
        joined.append(Hypothesis("".join(texts), score, attention, lost=lost))
    return joined


def _join_attention(
    parts: list[Hypothesis], sources: list[str], targets: list[str]
) -> list[Attention]:
    """The attention of parts, its words counted in the whole texts: a word may be in two parts."""
    if not any(part.attention for part in parts):
        return []
    return [
        replace(
            attention,
            source_words=[source + word for word in attention.source_words],
            target_words=[target + word for word in attention.target_words],
        )
        for part, source, target in zip(parts, _begin(sources), _begin(targets), strict=True)
        for attention in part.attention
    ]


def _begin(parts: list[str]) -> list[int]:
    """The number of the word with which each part of a text begins."""
    return count_words("".join(parts), accumulate(map(len, parts[:-1]), initial=0))


def _find_spaces(segments: list[Segment], usual: str) -> list[str]:
    """The white space before, between and after segments, of which there is one at least.

    `usual` takes the place of nothing or a blank between sentences.
    """
    texts = [segment.text for segment in segments]
    before = [text[: len(text) - len(text.lstrip())] for text in texts]
    after = [text[len(text.rstrip()) :] for text in texts]
    between = []
    for x, y, (one, other) in zip(after, before[1:], pairwise(segments), strict=False):
        gap, said = x + y, [one.is_translated, other.is_translated]
        if gap:
            parted = gap in (" ", "\u3000") and any(said)
        else:
            parted = all(said) and _is_parted(one.text, other.text)
        between.append(usual if parted else gap)
    return [before[0], *between, after[-1]]


def _is_parted(before: str, after: str) -> bool:
    """Whether two texts without white space between them are not the halves of a cut word."""
    last = (before.rstrip(UNSEEN) or before)[-1]
    if last in ".!?":  # within an address, a small letter or a digit follows
        return not re.match("[0-9a-z]", after)
    return bool(_PARTED.match(last))
