"""Images cut to a fixed size and batched, for training and for evaluation."""

import logging
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import torch
from fairseq.data import FairseqDataset
from PIL import Image
from torch import Tensor

from resmlp_mt.data.crops import (
    random_resized_crop,
    random_square_crop,
    resize_and_crop,
    to_pixels,
)
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
        image_size: Side S of what is cut out.
        train: Random parts in random order; otherwise the centres in order.
        crop_pct: Part of the shorter side that evaluation keeps.
        crop_mode: "center" or "squash", of evaluation (see `resize_and_crop`).
        square_resize: In training, the side of a square to which an image is brought before a part
            of size S is cut out at random; 0: the part is of a random size and shape.
        scale: Range of a random part's share of the area.
        ratio: Range of a random part's width over its height.
        interpolation: "bicubic", "bilinear", or "random" (in evaluation: bicubic).
        seed: Seed of the random parts.
        repeats: Copies in an epoch of each image that it uses.
        views: For multi-crop (arXiv 2006.09882), (count, scale) of the random parts that make up a
            sample. Evaluation cuts such views too, the same in every epoch.
        augment: What is done to a random part; its randomness comes from the second argument.
    """

    def __init__(
        self,
        folder: ImageFolder,
        image_size: int,
        *,
        train: bool,
        crop_pct: float = 0.9,
        crop_mode: str = "center",
        square_resize: int = 0,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bicubic",
        seed: int = 1,
        repeats: int = 1,
        views: Sequence[tuple[int, tuple[float, float]]] | None = None,
        augment: Callable[[Image.Image, np.random.Generator], Image.Image] | None = None,
    ):
        self.folder, self.image_size, self.train = folder, image_size, train
        self.crop_pct, self.scale, self.ratio = crop_pct, scale, ratio
        self.interpolation, self.seed, self.repeats, self.views = (
            interpolation,
            seed,
            repeats,
            views,
        )
        self.augment = augment
        self.crop_mode, self.square_resize = crop_mode, square_resize
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
        images = self._cut(image, i, copy)
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

    def _cut(self, image: Image.Image, i: int, copy: int) -> Tensor:
        if self.views is None and not self.train:
            interpolation = "bicubic" if self.interpolation == "random" else self.interpolation
            centre = resize_and_crop(
                image, self.image_size, self.crop_pct, interpolation, self.crop_mode
            )
            return torch.from_numpy(centre)
        epoch = self.epoch if self.train else 0
        generator = np.random.default_rng((self.seed, epoch, i, copy))

        def random_part(scale):
            if self.square_resize:
                part = random_square_crop(
                    image, self.square_resize, self.image_size, self.interpolation, generator
                )
            else:
                part = random_resized_crop(
                    image, self.image_size, scale, self.ratio, self.interpolation, generator
                )
            if self.augment:
                part = self.augment(part, generator)
            return torch.from_numpy(to_pixels(part))

        if self.views is None:
            return random_part(self.scale)
        return torch.stack([random_part(s) for count, s in self.views for _ in range(count)])

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
