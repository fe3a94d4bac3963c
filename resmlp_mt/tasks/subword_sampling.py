"""Subword regularisation: training text is cut into subwords anew in every epoch.

SentencePiece samples too, but from a generator whose state differs from process to process, so that
no training could be repeated or gone on with as if it had never stopped.
"""

import heapq
import math
import random
from functools import partial
from pathlib import Path

import sentencepiece
import torch
from fairseq.data import BaseWrapperDataset, Dictionary
from torch import Tensor

from resmlp_mt.data.subwords import find_subwords, load_subwords
from resmlp_mt.errors import UserError

_NBEST = 64  # segmentations that one of unigrams is drawn from


def cut_fully(text: str, subwords: sentencepiece.SentencePieceProcessor) -> list[str]:
    """The first pieces of BPE: characters, user-defined symbols, bytes of what has no piece."""
    # SentencePiece leaves out every merge where alpha is 1.
    return subwords.encode(text, out_type=str, enable_sampling=True, alpha=1.0, nbest_size=-1)


def drop_merges(
    pieces: list[str], scores: dict[str, float], dropout: float, draw: random.Random
) -> list[str]:
    """Merge pieces by BPE that leaves out merges at random, as SentencePiece does.

    BPE-dropout (Provilkov et al., 2020). A merge that was left out comes back only where a
    neighbour's merge makes a new pair.

    Args:
        pieces: As `cut_fully` gives them.
        scores: Of each piece; the pair that makes the piece with the highest is merged first.
        dropout: The share of merges that are left out; with 0 it is plain BPE.
        draw: The source of chance.

    Returns:
        The pieces.
    """
    # A merged piece stands where its first part stood, and None where the others did.
    pieces, count = list(pieces), len(pieces)
    before, behind = list(range(-1, count - 1)), list(range(1, count + 1))
    pairs: list[tuple[float, int, str]] = []

    def offer(left: int) -> None:
        if left >= 0 and (right := behind[left]) < count:
            merged = pieces[left] + pieces[right]
            if merged in scores:
                heapq.heappush(pairs, (-scores[merged], left, merged))

    for left in range(count - 1):
        offer(left)
    while pairs:
        _, left, merged = heapq.heappop(pairs)
        if pieces[left] is None or (right := behind[left]) == count:
            continue
        if pieces[left] + pieces[right] != merged or draw.random() < dropout:
            continue
        pieces[left], pieces[right] = merged, None
        behind[left] = behind[right]
        if behind[right] < count:
            before[behind[right]] = left
        offer(before[left])
        offer(left)
    return [piece for piece in pieces if piece is not None]


def draw_segmentation(
    text: str, subwords: sentencepiece.SentencePieceProcessor, alpha: float, draw: random.Random
) -> list[str]:
    """Cut text by one of the unigram model's best segmentations.

    Subword regularisation (Kudo, 2018): each of the best 64 has a share in proportion to its
    probability to the power of alpha.

    Args:
        text: As SentencePiece decodes it.
        subwords: A model of unigrams.
        alpha: 0 makes all alike, 1 takes the model's own probabilities.
        draw: The source of chance.

    Returns:
        The pieces.
    """
    best = subwords.nbest_encode(text, nbest_size=_NBEST, out_type=int)
    scores = [list(map(subwords.get_score, ids)) for ids in best]
    # User-defined symbols have the score 0, as bytes do. The best has them all, others spell some.
    weights = [
        math.exp(alpha * (sum(each) - sum(scores[0]))) * (each.count(0) == scores[0].count(0))
        for each in scores
    ]
    (ids,) = draw.choices(best, weights)
    return [subwords.id_to_piece(i) for i in ids]


class SampledSubwords(BaseWrapperDataset):
    """One side of the training text, each sentence cut otherwise in each epoch.

    How a sentence is cut depends on the seed, the epoch and its place alone, so that a training
    that goes on sees what one that never stopped would see. What the sampling would make longer
    than the model takes, and what holds unknown characters, is left as it was prepared.

    Args:
        dataset: The side as it was prepared; items (T,), with </s> at the end.
        dictionary: Its entries.
        subwords: The model that made them.
        alpha: For BPE the share of merges that are left out, for unigrams how even the samples are.
        seed: Of the training.
        longest: The model's limit, with </s>.
    """

    def __init__(
        self,
        dataset,
        dictionary: Dictionary,
        subwords: sentencepiece.SentencePieceProcessor,
        alpha: float,
        seed: int,
        longest: int,
    ):
        super().__init__(dataset)
        self.dictionary, self.subwords = dictionary, subwords
        self.alpha, self.seed, self.longest = alpha, seed, longest
        pieces = map(subwords.id_to_piece, range(len(subwords)))
        self.scores = {piece: subwords.get_score(i) for i, piece in enumerate(pieces)}
        # SentencePiece does not tell what a model is. BPE's scores are the order of its merges.
        self.is_bpe = all(score == round(score) for score in self.scores.values())
        # Shared, since worker processes that load the data live longer than an epoch.
        self.epoch = torch.ones(1, dtype=torch.int64).share_memory_()

    def __getitem__(self, index: int) -> Tensor:
        """The sentence as cut in this epoch; (T,)."""
        prepared = self.dataset[index]
        entries = prepared[:-1].tolist()
        if self.dictionary.unk() in entries:
            return prepared
        text = self.subwords.decode(list(map(self.dictionary.__getitem__, entries)))
        draw = random.Random(f"{self.seed} {self.epoch.item()} {index}")
        if self.is_bpe:
            pieces = cut_fully(text, self.subwords)
            pieces = drop_merges(pieces, self.scores, self.alpha, draw)
        else:
            pieces = draw_segmentation(text, self.subwords, self.alpha, draw)
        sampled = [self.dictionary.index(piece) for piece in pieces]
        if len(sampled) + 1 > self.longest or self.dictionary.unk() in sampled:
            return prepared
        return torch.tensor([*sampled, self.dictionary.eos()])

    def set_epoch(self, epoch: int) -> None:
        """Cut otherwise from now on."""
        super().set_epoch(epoch)
        self.epoch.fill_(epoch)


def sample_subwords(
    dataset, folder: Path, langs: tuple[str, str], alpha: float, seed: int, longest: tuple[int, int]
) -> None:
    """Let fairseq's data set of pairs cut both sides anew in every epoch.

    Args:
        dataset: fairseq's LanguagePairDataset.
        folder: Of the data, with the SentencePiece models that `resmlp-mt prepare` puts there.
        langs: Source and target language.
        alpha, seed, longest: As for `SampledSubwords`; the last for both sides.

    Raises:
        UserError: If the folder has no such models.
    """
    sides = []
    for side, lang, limit in zip(("src", "tgt"), langs, longest, strict=True):
        path = find_subwords(folder, lang)
        if path is None:
            raise UserError(
                f"--subword-sampling: {folder} has no spm.{lang}.model and no spm.model; "
                "`resmlp-mt prepare` makes such a folder"
            )
        dictionary = getattr(dataset, f"{side}_dict")
        subwords = load_subwords(path)
        prepared = getattr(dataset, side)
        sampled = SampledSubwords(prepared, dictionary, subwords, alpha, seed, limit)
        setattr(dataset, side, sampled)
        sides.append(sampled)
    dataset.set_epoch = partial(_set_epoch, sides)  # fairseq's pairs do not hand it on


def _set_epoch(sides: list[SampledSubwords], epoch: int) -> None:
    for side in sides:
        side.set_epoch(epoch)
