"""The operations of RandAugment and AutoAugment on pictures: timm's, of some strength."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from resmlp_mt.data.crops import draw_interpolation

HIGHEST = 10  # magnitude
_UNIFORM_FROM = 100  # a magnitude's standard deviation above it stands for "anything below m"


class Operations:
    """Operations on pictures in mode "RGB" or "L". In mode "L", "Color" changes nothing.

    Args:
        mean: Of each channel, on a scale of 0 to 1: the colour around a picture that is moved.
        interpolation: "bicubic", "bilinear", or "random": one of both for each operation.
        spread: Standard deviation of the magnitudes, which are cut off at 0 and 10. Above 100 they
            are uniform.
        increasing: Whether all operations grow with the magnitude.
    """

    def __init__(
        self, mean: Sequence[float], interpolation: str, spread: float, increasing: bool = False
    ):
        self.fill = tuple(min(max(round(255 * value), 0), 255) for value in mean)
        self.interpolation, self.spread, self.increasing = interpolation, spread, increasing

    def apply(
        self, name: str, image: Image.Image, magnitude: float, generator: np.random.Generator
    ) -> Image.Image:
        """Do an operation of COLOURS or WARPS, or "Rotate", at about a magnitude of 0 to 10."""
        level = self._draw_magnitude(magnitude, generator) / HIGHEST
        sign = int(generator.choice((-1, 1)))
        if name in COLOURS:
            return COLOURS[name](image, level, sign, self.increasing)
        kind = draw_interpolation(self.interpolation, generator)
        fill = self.fill if len(self.fill) > 1 else self.fill[0]
        if name == "Rotate":
            return image.rotate(30 * sign * level, resample=kind, fillcolor=fill)
        matrix = WARPS[name](sign * level, *image.size)
        affine = Image.Transform.AFFINE
        return image.transform(image.size, affine, matrix, resample=kind, fillcolor=fill)

    def _draw_magnitude(self, magnitude: float, generator: np.random.Generator) -> float:
        if self.spread > _UNIFORM_FROM:
            return generator.uniform(0, magnitude)
        return min(max(generator.normal(magnitude, self.spread), 0), HIGHEST)


def _posterize(image: Image.Image, level: float, sign: int, increasing: bool) -> Image.Image:
    bits = int(4 * level)
    return _keep_bits(image, 4 - bits if increasing else bits)


def _posterize_less(image: Image.Image, level: float, *_) -> Image.Image:
    return _keep_bits(image, 4 + int(4 * level))


def _keep_bits(image: Image.Image, bits: int) -> Image.Image:
    # Pillow's own refuses to keep 0 bits, which gives a black picture.
    kept = [value & (0xFF << (8 - bits)) & 0xFF for value in range(256)]
    return image.point(kept * len(image.getbands()))


def _solarize(image: Image.Image, level: float, sign: int, increasing: bool) -> Image.Image:
    threshold = int(256 * level)
    return ImageOps.solarize(image, 256 - threshold if increasing else threshold)


def _solarize_add(image: Image.Image, level: float, sign: int, increasing: bool) -> Image.Image:
    added = int(110 * level)  # at most 110, so that 127 stays below 255
    brighter = [value + added if value < 128 else value for value in range(256)]
    return image.point(brighter * len(image.getbands()))


def _enhance(
    kind: type, image: Image.Image, level: float, sign: int, increasing: bool
) -> Image.Image:
    # A factor of 1 changes nothing.
    factor = max(0.1, 1 + sign * 0.9 * level) if increasing else 0.1 + 1.8 * level
    return kind(image).enhance(factor)


# Picture, level from 0 to 1, sign, "inc" -> picture.
COLOURS: dict[str, Callable] = {
    "AutoContrast": lambda image, *_: ImageOps.autocontrast(image),
    "Equalize": lambda image, *_: ImageOps.equalize(image),
    "Invert": lambda image, *_: ImageOps.invert(image),
    "Posterize": _posterize,
    "PosterizeOriginal": _posterize_less,
    "Solarize": _solarize,
    "SolarizeAdd": _solarize_add,
    "Color": partial(_enhance, ImageEnhance.Color),
    "Contrast": partial(_enhance, ImageEnhance.Contrast),
    "Brightness": partial(_enhance, ImageEnhance.Brightness),
    "Sharpness": partial(_enhance, ImageEnhance.Sharpness),
}
# Signed level, width, height -> where each pixel comes from, as Pillow's affine transform has it.
WARPS: dict[str, Callable] = {
    "ShearX": lambda level, width, height: (1, 0.3 * level, 0, 0, 1, 0),
    "ShearY": lambda level, width, height: (1, 0, 0, 0.3 * level, 1, 0),
    "TranslateX": lambda level, width, height: (1, 0, 0.45 * level * width, 0, 1, 0),
    "TranslateY": lambda level, width, height: (1, 0, 0, 0, 1, 0.45 * level * height),
}
