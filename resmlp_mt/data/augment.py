"""Augmentation of images (the recipe of DeiT, arXiv 2012.12877), with timm's names for the flags.

Workers flip pictures and do RandAugment or AutoAugment, with Pillow. The rest is done in batches on
the model's device: colours and erased rectangles by kornia; mixup and cutmix are written here,
because kornia draws mixup's share uniformly and the recipe draws it from a Beta distribution.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from resmlp_mt.data.autoaugment import AutoAugment
from resmlp_mt.data.randaugment import RandAugment
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_extra

# The beginnings of --aa.
_POLICIES = {"rand": RandAugment, "original": AutoAugment}
# With a smaller alpha, what a share is computed from becomes 0 in fp32, and the share a half.
_LEAST_ALPHA = 0.01
_LARGEST = torch.finfo(torch.float32).max


class AugmentPicture:
    """A picture that is cut to size -> flipped at random, and changed as --aa says.

    Args:
        cfg: The flags of `RecipeConfig`.
        mean: Of each channel, on a scale of 0 to 1.
        interpolation: "bicubic", "bilinear", or "random".

    Raises:
        UserError: If --aa is not in timm's notation.
    """

    def __init__(self, cfg, mean: list[float], interpolation: str):
        self.hflip = cfg.hflip
        self.operations = _build_policy(cfg.aa, mean, interpolation) if cfg.aa else None

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> Image.Image:
        """A picture in mode "RGB" or "L"; `generator` is where the randomness comes from."""
        if generator.random() < self.hflip:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return self.operations(image, generator) if self.operations else image


class Augment(nn.Module):
    """uint8 images -> normalised, augmented images and soft targets.

    Args:
        cfg: The flags of `RecipeConfig`.
        mean, std: Of each channel, on a scale of 0 to 1.
        num_classes: K.

    Raises:
        UserError: If a flag is out of range, or kornia is missing.
    """

    def __init__(self, cfg, mean: list[float], std: list[float], num_classes: int):
        super().__init__()
        probabilities = ("hflip", "reprob", "mixup_prob", "mixup_switch_prob")
        check_flags(cfg, probabilities, ("color_jitter", "mixup", "cutmix"))
        for name in ("mixup", "cutmix"):
            if 0 < (alpha := getattr(cfg, name)) < _LEAST_ALPHA:
                raise UserError(f"--{name} {alpha} is too small: take {_LEAST_ALPHA} or more, or 0")
        self.cfg = cfg
        self.num_classes = num_classes
        self.normalise = Normalise(mean, std)
        K = import_extra("kornia.augmentation", "training on images")
        # As in timm, --aa takes the place of the jitter.
        jitters = bool(cfg.color_jitter) and not cfg.aa
        self.colours = K.ColorJitter(*3 * [cfg.color_jitter], p=1.0) if jitters else nn.Identity()
        # timm's scale and ratio.
        self.erase = K.RandomErasing(p=cfg.reprob, scale=(0.02, 1 / 3), ratio=(0.3, 10 / 3))

    @torch.no_grad()
    def forward(self, images: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Augment a batch.

        Args:
            images: uint8 pixels. (B, in_chans, H, W).
            target: Classes. (B,).

        Returns:
            Normalised float32 images, and the share of each class, (B, K).
        """
        images = images.float() / 255
        if images.size(1) == 3:
            images = self.colours(images)
        images = self._erase(self.normalise.scale(images.clamp(0, 1)))
        return self._mix(images, F.one_hot(target, self.num_classes).to(images.dtype))

    def _erase(self, images: Tensor) -> Tensor:
        if self.cfg.reprob == 0:
            return images
        kept = self.erase(torch.ones_like(images[:, :1])).bool()
        # After normalisation the mean colour is 0, and noise of unit variance fits the images.
        fill = torch.randn_like(images) if self.cfg.remode == "pixel" else torch.zeros_like(images)
        return torch.where(kept, images, fill)

    def _mix(self, images: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Mix the first image with the last, the second with the last but one ..., by one share."""
        cfg = self.cfg
        if not (cfg.mixup or cfg.cutmix) or torch.rand(()) >= cfg.mixup_prob:
            return images, target
        cut = bool(cfg.cutmix) and (not cfg.mixup or bool(torch.rand(()) < cfg.mixup_switch_prob))
        alpha = cfg.cutmix if cut else cfg.mixup
        share = torch.distributions.Beta(alpha, alpha).sample().item()
        if cut:
            images, share = _paste(images, share)
        else:
            images = images * share + images.flip(0) * (1 - share)
        return images, target * share + target.flip(0) * (1 - share)


class Normalise(nn.Module):
    """uint8 images -> float32 images with mean 0 and standard deviation 1 of each channel."""

    def __init__(self, mean: list[float], std: list[float]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(list(mean)).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(list(std)).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, H, W)."""
        return self.scale(images.float() / 255)

    def scale(self, images: Tensor) -> Tensor:
        """The same for pixels on a scale of 0 to 1."""
        return (images - self.mean) / self.std


def _paste(images: Tensor, share: float) -> tuple[Tensor, float]:
    """Cutmix: paste a rectangle of 1 - share of the area; returns the share that is left."""
    height, width = images.shape[-2:]
    high, wide = (int(side * math.sqrt(1 - share)) for side in (height, width))
    y, x = (int(torch.randint(side, ())) for side in (height, width))
    top, bottom = max(y - high // 2, 0), min(y + (high + 1) // 2, height)
    left, right = max(x - wide // 2, 0), min(x + (wide + 1) // 2, width)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images.flip(0)[..., top:bottom, left:right]
    return mixed, 1 - (bottom - top) * (right - left) / (height * width)


def check_flags(cfg, probabilities: tuple[str, ...], sizes: tuple[str, ...]) -> None:
    """Refuse flags of the augmentation that mean nothing.

    Raises:
        UserError: Naming the flag.
    """
    for name in probabilities:
        if not 0 <= (value := getattr(cfg, name)) <= 1:
            raise UserError(f"--{name.replace('_', '-')} is a probability, not {value}")
    for name in sizes:
        if not 0 <= (value := getattr(cfg, name)) <= _LARGEST:
            raise UserError(
                f"--{name.replace('_', '-')} must be 0 or a positive number of fp32, not {value}"
            )


def _build_policy(notation: str, mean: list[float], interpolation: str):
    policy = _POLICIES.get(notation.split("-")[0])
    if policy is None:
        raise UserError(f"--aa {notation}: take the like of rand-m9-mstd0.5-inc1, or of original")
    return policy(notation, mean, interpolation)
