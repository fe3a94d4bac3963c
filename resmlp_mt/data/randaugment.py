"""RandAugment (arXiv 1909.13719) as timm has it, on pictures, with timm's notation.

timm's differs from the paper's, and from that of other libraries: each operation that was drawn is
left out half of the time, and the magnitude counts to 10. Published recipes mean timm's.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from resmlp_mt.data.crops import INTERPOLATIONS
from resmlp_mt.errors import UserError

_HIGHEST = 10  # magnitude
_UNIFORM_FROM = 100  # a magnitude's standard deviation above it stands for "anything below m"


class RandAugment:
    """Random operations of random strength, of the same distribution as timm's.

    Args:
        notation: rand[-mM][-nN][-pP][-mstdS][-inc1]. N operations (2) are drawn with replacement
            and each is done with probability P (0.5) at magnitude M of 10 (10), or at one from a
            normal distribution around M with standard deviation S (0), cut off at 0 and 10. With
            S above 100 it is uniform from 0 to M. "inc1": all operations grow with the magnitude.
        mean: Of each channel, on a scale of 0 to 1: what moves in from outside the picture.
        interpolation: "bicubic", "bilinear", or "random": one of both for each operation.

    Raises:
        UserError: If the notation says something else.
    """

    def __init__(self, notation: str, mean: Sequence[float], interpolation: str):
        values = _parse(notation)
        self.magnitude, self.spread = float(values["m"]), float(values["mstd"])
        self.count, self.probability = int(values["n"]), float(values["p"])
        self.increasing = values["inc"] == "1"
        self.fill = tuple(min(max(round(255 * value), 0), 255) for value in mean)
        self.interpolation = interpolation

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> Image.Image:
        """Augment a picture in mode "RGB" or "L"; `generator` is where the randomness comes from.

        In mode "L", "Color" changes nothing.
        """
        for name in generator.choice(OPERATIONS, self.count):
            if generator.random() < self.probability:
                image = self.apply(str(name), image, generator)
        return image

    def apply(self, name: str, image: Image.Image, generator: np.random.Generator) -> Image.Image:
        """Do one of the OPERATIONS, at a magnitude and in a direction drawn at random."""
        level = self._draw_magnitude(generator) / _HIGHEST
        sign = int(generator.choice((-1, 1)))
        if name in _COLOURS:
            return _COLOURS[name](image, level, sign, self.increasing)
        kind = self.interpolation
        kind = INTERPOLATIONS[generator.choice(list(INTERPOLATIONS)) if kind == "random" else kind]
        fill = self.fill if len(self.fill) > 1 else self.fill[0]
        if name == "Rotate":
            return image.rotate(30 * sign * level, resample=kind, fillcolor=fill)
        matrix = _WARPS[name](sign * level, *image.size)
        affine = Image.Transform.AFFINE
        return image.transform(image.size, affine, matrix, resample=kind, fillcolor=fill)

    def _draw_magnitude(self, generator: np.random.Generator) -> float:
        if self.spread > _UNIFORM_FROM:
            return generator.uniform(0, self.magnitude)
        return min(max(generator.normal(self.magnitude, self.spread), 0), _HIGHEST)


def _posterize(image: Image.Image, level: float, sign: int, increasing: bool) -> Image.Image:
    bits = int(4 * level)
    bits = 4 - bits if increasing else bits
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
_COLOURS: dict[str, Callable] = {
    "AutoContrast": lambda image, *_: ImageOps.autocontrast(image),
    "Equalize": lambda image, *_: ImageOps.equalize(image),
    "Invert": lambda image, *_: ImageOps.invert(image),
    "Posterize": _posterize,
    "Solarize": _solarize,
    "SolarizeAdd": _solarize_add,
    "Color": partial(_enhance, ImageEnhance.Color),
    "Contrast": partial(_enhance, ImageEnhance.Contrast),
    "Brightness": partial(_enhance, ImageEnhance.Brightness),
    "Sharpness": partial(_enhance, ImageEnhance.Sharpness),
}
# Signed level, width, height -> where each pixel comes from, as Pillow's affine transform has it.
_WARPS: dict[str, Callable] = {
    "ShearX": lambda level, width, height: (1, 0.3 * level, 0, 0, 1, 0),
    "ShearY": lambda level, width, height: (1, 0, 0, 0.3 * level, 1, 0),
    "TranslateX": lambda level, width, height: (1, 0, 0.45 * level * width, 0, 1, 0),
    "TranslateY": lambda level, width, height: (1, 0, 0, 0, 1, 0.45 * level * height),
}
OPERATIONS = (*_COLOURS, "Rotate", *_WARPS)


def _parse(notation: str) -> dict[str, str]:
    values = {"m": "10", "n": "2", "p": "0.5", "mstd": "0", "inc": "0"}
    name, *parts = notation.split("-")
    if name != "rand":
        raise UserError(f"--aa {notation}: only RandAugment is known, as rand-m9-mstd0.5-inc1")
    for part in parts:
        match = re.fullmatch(r"(mstd|inc|m|n|p)(\d+(?:\.\d+)?)", part)
        if not match:
            raise UserError(f"--aa {notation}: {part} is not one of mM, nN, pP, mstdS, inc0, inc1")
        values[match[1]] = match[2]
    if float(values["m"]) > _HIGHEST:
        raise UserError(f"--aa {notation}: m must be at most {_HIGHEST}")
    if not values["n"].isdigit() or not 1 <= int(values["n"]) <= len(OPERATIONS):
        raise UserError(f"--aa {notation}: n must be 1 to {len(OPERATIONS)} operations")
    if float(values["p"]) > 1:
        raise UserError(f"--aa {notation}: p is a probability")
    if values["inc"] not in ("0", "1"):
        raise UserError(f"--aa {notation}: inc must be 0 or 1")
    return values
