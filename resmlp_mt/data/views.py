"""Several views of each image, augmented as DINO does it (arXiv 2104.14294)."""

import torch
from torch import Tensor, nn

from resmlp_mt.data.augment import Normalise, check_flags
from resmlp_mt.extras import import_extra

GLOBAL_VIEWS = 2
# DINO's largest blur for images of 224 pixels, and the smallest images that it changes visibly.
_BLUR, _BLUR_FROM = 2.0 / 224, 64


class AugmentViews(nn.Module):
    """uint8 views -> normalised, augmented views, as DINO does it.

    Every view: flip; jitter in four of five images, by --color-jitter in brightness and contrast,
    half of it in saturation, a quarter in hue; grey in one of five. Then blur: always in the first
    global view, in a tenth of the second, in half of the local ones; a fifth of the second is
    solarised. The blur is that of 224 pixels in proportion, and left out below 64 pixels, where it
    would be less than a pixel wide. Grey images have their flips, blur and solarisation.

    Args:
        cfg: The flags of `AugmentConfig`.
        mean, std: Of each channel, on a scale of 0 to 1.
        image_size: Side of the images in pixels.

    Raises:
        UserError: If a flag is out of range, or kornia is missing.
    """

    def __init__(self, cfg, mean: list[float], std: list[float], image_size: int):
        super().__init__()
        check_flags(cfg, ("hflip",), ("color_jitter",))
        K = import_extra("kornia.augmentation", "training on images")
        jitter = cfg.color_jitter
        self.normalise = Normalise(mean, std)
        self.flip = K.RandomHorizontalFlip(p=cfg.hflip)
        self.colours = nn.Sequential(
            K.ColorJitter(jitter, jitter, jitter / 2, min(jitter / 4, 0.5), p=0.8),
            K.RandomGrayscale(p=0.2),
        )
        self.blurs = nn.ModuleList(_blur(K, image_size, p) for p in (1.0, 0.1, 0.5))
        self.solarise = K.RandomSolarize(thresholds=(0.5, 0.5), additions=(0.0, 0.0), p=0.2)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """(B, V, in_chans, H, W) -> (V B, in_chans, H, W) float32, view by view."""
        size = images.size(0)
        images = self.flip(images.transpose(0, 1).flatten(0, 1).float() / 255)
        if images.size(1) == 3:
            images = self.colours(images)
        first, second, local = images.tensor_split((size, GLOBAL_VIEWS * size))
        second = self.solarise(self.blurs[1](second))
        local = self.blurs[2](local) if len(local) else local
        images = torch.cat([self.blurs[0](first), second, local])
        return self.normalise.scale(images.clamp(0, 1))


def _blur(K, size: int, p: float) -> nn.Module:
    if size < _BLUR_FROM:
        return nn.Identity()
    largest = _BLUR * size
    # Three standard deviations to each side, of which kornia draws one for each image.
    side = 2 * round(3 * largest) + 1
    return K.RandomGaussianBlur((side, side), (largest / 20, largest), p=p)
