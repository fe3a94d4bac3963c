"""Images cut to a fixed size and batched, for training and for evaluation."""

import logging
from collections.abc import Callable
from itertools import chain

import numpy as np
import torch
from fairseq.data import FairseqDataset
from PIL import Image

from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.data.pixels import BrokenImage

logger = logging.getLogger(__name__)


class ImageDataset(FairseqDataset):
    """Images and their classes, batched by fairseq.

    What is cut out of an image in training, and how it is augmented, depends on the seed, the
    epoch, the image and the copy alone: the number of workers does not matter. An epoch has as many
    samples as there are images.

    With repeated augmentation (arXiv 1901.09335, and DeiT) these are copies of a part of the
    images, drawn anew for each epoch; copy c of image i has the index i + c * len(folder).
    In training the next image takes the place of a broken one, with a warning; in evaluation a
    broken one is an error.

    Args:
        folder: The images.
        cut: Takes parts of an image in mode "RGB" or "L": one part, (C, S, S), or V, (V, C, S,
            S). Its randomness comes from the second argument.
        train: In random order, with other parts in each epoch; otherwise in order, with the same.
        seed: Seed of the random parts.
        repeats: Copies in an epoch of each image that it uses.
    """

    def __init__(
        self,
        folder: ImageFolder,
        cut: Callable[[Image.Image, np.random.Generator], np.ndarray],
        *,
        train: bool,
        seed: int = 1,
        repeats: int = 1,
    ):
        self.folder, self.cut, self.train = folder, cut, train
        self.seed, self.repeats = seed, repeats
        self.epoch = 1
        self.sizes = np.ones(len(folder) * repeats, dtype=np.int64)
        # In shared memory, so that all workers together warn once of a file.
        self._broken = torch.zeros(len(folder), dtype=torch.bool).share_memory_()

    def __len__(self) -> int:
        return len(self.folder)

    def __getitem__(self, index: int) -> dict:
        """A sample: id, target, and images of shape (C, S, S), or (V, C, S, S) with V views.

        Raises:
            BrokenImage: In evaluation; in training if not one image is whole.
        """
        copy, i = divmod(int(index), len(self))
        image, i = self._open_next(i) if self.train else (self.folder.open(i), i)
        drawn = np.random.default_rng((self.seed, self.epoch if self.train else 0, i, copy))
        images = torch.from_numpy(self.cut(image, drawn))
        return {"id": int(index), "images": images, "target": int(self.folder.targets[i])}

    def _open_next(self, i: int) -> tuple[Image.Image, int]:
        """The first image from i on that is whole, and its place."""
        for j in chain(range(i, len(self)), range(i)):
            try:
                return self.folder.open(j), j
            except BrokenImage as error:
                last = error
                self._warn(j, error)
        raise last

    def _warn(self, i: int, error: BrokenImage) -> None:
        if not self._broken[i]:
            self._broken[i] = True
            logger.warning("%s; left out, %d such so far", error, self._broken.sum())

    def collater(self, samples: list[dict]) -> dict:
        """Stack samples into a batch; no samples, as fairseq fills up short shards, into {}.

        Shapes: id (B,), target (B,), images (B, C, S, S) or (B, V, C, S, S), uint8.
        """
        if not samples:
            return {}
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": len(samples),
            "net_input": {"images": torch.stack([sample["images"] for sample in samples])},
            "target": torch.tensor([sample["target"] for sample in samples]),
        }

    def ordered_indices(self) -> np.ndarray:
        """The indices of an epoch; in training at random by numpy's generator, which fairseq seeds.

        Copies follow each other. DeiT deals them to different workers in the same step; fairseq
        shuffles batches and deals them whole, so copies meet in a step only within a batch.
        """
        count = len(self)
        if not self.train:
            return np.arange(count)
        indices = np.random.permutation(count)[:, None] + np.arange(self.repeats) * count
        return indices.reshape(-1)[:count]

    def set_epoch(self, epoch: int) -> None:
        """Take the epoch that the next samples are for."""
        self.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False in training: the workers of a reused iterator would stay in their first epoch."""
        return not self.train

    def num_tokens(self, index: int) -> int:
        """One, since --max-tokens counts images."""
        return 1

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """One each. Shape: (len(indices),)."""
        return np.ones(len(indices), dtype=np.int64)

    def size(self, index: int) -> int:
        """One, as `num_tokens`."""
        return 1
