"""Images cut to a fixed size and batched, for training and for evaluation."""

import logging
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from fairseq.data import FairseqDataset
from PIL import Image
from torch import Tensor

from resmlp_mt.data.image_files import BrokenImage, ImageFolder

logger = logging.getLogger(__name__)

INTERPOLATIONS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


def resize_and_crop(
    image: Image.Image, size: int, crop_pct: float, interpolation: str = "bicubic"
) -> Tensor:
    """The centre of an image, for evaluation.

    The shorter side is resized to floor(size / crop_pct), then the centre is cut out, with the
    rounding of torchvision and timm.

    Args:
        image: In mode "RGB" or "L".
        size: Side of the result.
        crop_pct: Part of the shorter side that is kept, at most 1.
        interpolation: "bicubic" or "bilinear".

    Returns:
        Shape: (in_chans, size, size), uint8.
    """
    short = math.floor(size / crop_pct)
    resized = [int(short * side / min(image.size)) for side in image.size]
    left, top = (int(round((side - size) / 2)) for side in resized)
    if image.size == tuple(resized):
        return to_tensor(image.crop((left, top, left + size, top + size)))
    # As resizing the whole and then cropping, at the cost of the crop, however long the image.
    edges = zip((left, top, left + size, top + size), image.size * 2, resized * 2, strict=True)
    box = tuple(edge * side / new for edge, side, new in edges)
    return to_tensor(image.resize((size, size), INTERPOLATIONS[interpolation], box=box))


def random_resized_crop(
    image: Image.Image,
    size: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    interpolation: str,
    generator: np.random.Generator,
) -> Image.Image:
    """A random part of an image, brought to a square (arXiv 1409.4842, section 6).

    Args:
        image: In mode "RGB" or "L".
        size: Side of the result.
        scale: Range of the part's share of the area.
        ratio: Range of its width over its height.
        interpolation: "bicubic", "bilinear", or "random": one of both.
        generator: Where the randomness comes from.
    """
    if interpolation == "random":
        interpolation = generator.choice(list(INTERPOLATIONS))
    left, top, width, height = _random_box(*image.size, scale, ratio, generator)
    box = (left, top, left + width, top + height)
    return image.resize((size, size), INTERPOLATIONS[interpolation], box=box)


def _random_box(
    width: int,
    height: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: np.random.Generator,
) -> tuple[int, int, int, int]:
    """Left, top, width and height of the part to keep."""
    for _ in range(10):
        area = width * height * generator.uniform(*scale)
        aspect = math.exp(generator.uniform(*np.log(ratio)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return (
                int(generator.integers(width - w + 1)),
                int(generator.integers(height - h + 1)),
                w,
                h,
            )
    # Too long an image for that: the centre, as long as the ratio allows.
    w, h = min(width, round(height * ratio[1])), min(height, round(width / ratio[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def to_tensor(image: Image.Image) -> Tensor:
    """The pixels of an image in mode "RGB" or "L". Shape: (in_chans, height, width), uint8."""
    pixels = np.array(image)
    return torch.from_numpy(np.ascontiguousarray(np.atleast_3d(pixels).transpose(2, 0, 1)))


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
        for j in (*range(i, len(self)), *range(i)):
            try:
                return self.folder.open(j), j
            except BrokenImage as error:
                last = error
                self._warn(j, error)
        raise last

    def _cut(self, image: Image.Image, i: int, copy: int) -> Tensor:
        if self.views is None and not self.train:
            interpolation = "bicubic" if self.interpolation == "random" else self.interpolation
            return resize_and_crop(image, self.image_size, self.crop_pct, interpolation)
        epoch = self.epoch if self.train else 0
        generator = np.random.default_rng((self.seed, epoch, i, copy))

        def random_part(scale):
            part = random_resized_crop(
                image, self.image_size, scale, self.ratio, self.interpolation, generator
            )
            return to_tensor(self.augment(part, generator) if self.augment else part)

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
        """No in training: the workers of a reused iterator would stay in their first epoch."""
        return not self.train

    def num_tokens(self, index: int) -> int:
        """One: what --max-tokens counts are images."""
        return 1

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """One each. Shape: (len(indices),)."""
        return np.ones(len(indices), dtype=np.int64)

    def size(self, index: int) -> int:
        """One, as `num_tokens`."""
        return 1
