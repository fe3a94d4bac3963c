"""Images whose pixels change places, the same in all images: `--user-dir .../shuffled`.

Section 4.5 of MLP-Mixer (arXiv 2105.01601). The task is image classification with three flags more.
The models of baseline/ come with it.
"""

from dataclasses import dataclass, field

import baseline  # noqa: F401  (registers its models; fairseq puts its folder on the path)
import torch
from fairseq.data import BaseWrapperDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from torch import Tensor

from resmlp_mt.errors import UserError
from resmlp_mt.tasks.image_classification import (
    ResMLPImageClassificationConfig,
    ResMLPImageClassificationTask,
)

NAME = "image_classification_shuffled"


@dataclass
class ShuffledConfig(ResMLPImageClassificationConfig):
    """The flags of the shuffle, beside those of classification."""

    shuffle: ChoiceEnum(["none", "patches", "pixels"]) = field(
        default="none",
        metadata={
            "help": "patches: their order, and the pixels in each of them alike; pixels: all pixels"
        },
    )
    shuffle_patch: int = field(default=4, metadata={"help": "side of such a patch in pixels"})
    shuffle_seed: int = field(default=1, metadata={"help": "another one, another shuffle"})


@register_task(NAME, dataclass=ShuffledConfig)
class ShuffledTask(ResMLPImageClassificationTask):
    """Classification of shuffled images, in training as in validation.

    With --store-ema the averaged weights alone are validated, which takes half the time.
    """

    name = NAME

    def load_dataset(self, split: str, task_cfg=None, **kwargs) -> None:
        """Load images that are cut and flipped first, and shuffled then."""
        super().load_dataset(split, task_cfg, **kwargs)
        cfg = self.cfg
        order = draw_order(str(cfg.shuffle), cfg.image_size, cfg.shuffle_patch, cfg.shuffle_seed)
        self.datasets[split] = _Shuffled(self.datasets[split], order)

    def valid_step(self, sample, model, criterion, ema_model=None):
        """Evaluate the averaged weights where there are some."""
        if ema_model is not None:
            model = ema_model.eval()
        return super().valid_step(sample, model, criterion)


class _Shuffled(BaseWrapperDataset):
    def __init__(self, dataset, order: Tensor):
        super().__init__(dataset)
        self.order = order

    def __getitem__(self, index: int) -> dict:
        sample = self.dataset[index]
        return sample | {"images": shuffle(sample["images"], self.order)}


def draw_order(kind: str, side: int, patch: int, seed: int) -> Tensor:
    """Which pixel each pixel of a shuffled image is, counted row by row.

    Args:
        kind: "none", "patches" or "pixels".
        side: Of the image, in pixels.
        patch: Side of a patch.
        seed: Of the shuffle.

    Returns:
        Shape: (side * side,).

    Raises:
        UserError: If the patches do not divide the image.
    """
    places = torch.arange(side * side)
    generator = torch.Generator().manual_seed(seed)
    if kind == "none":
        return places
    if kind == "pixels":
        return torch.randperm(side * side, generator=generator)
    if patch < 1 or side % patch:
        raise UserError(f"--shuffle-patch {patch} does not divide images of {side} pixels")
    grid = side // patch
    # (patches, pixels in a patch)
    patches = places.view(grid, patch, grid, patch).transpose(1, 2).reshape(grid**2, patch**2)
    order = torch.randperm(grid**2, generator=generator)
    within = torch.randperm(patch**2, generator=generator)
    shuffled = patches[order][:, within]
    return shuffled.view(grid, grid, patch, patch).transpose(1, 2).reshape(-1)


def shuffle(images: Tensor, order: Tensor) -> Tensor:
    """Give each pixel its new place, in all channels alike. (..., side, side)."""
    return images.flatten(-2)[..., order].unflatten(-1, images.shape[-2:])
