"""Images cut to a square: the centre, or a part at random. Pillow and NumPy alone."""

import math

import numpy as np
from PIL import Image

# What evaluation sees of an image that is no square: its centre, or all of it, out of shape.
CROP_MODES = ("center", "squash")
# Of longer images evaluation resizes the part that it keeps alone.
_LONGEST = 4
INTERPOLATIONS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


def resize_and_crop(
    image: Image.Image,
    size: int,
    crop_pct: float,
    interpolation: str = "bicubic",
    crop_mode: str = "center",
) -> np.ndarray:
    """The centre of an image, for evaluation.

    The shorter side is resized to floor(size / crop_pct), then the centre is cut out, with the
    rounding of torchvision and timm. The pixels are theirs too, but for images that are more than 4
    times as long as they are wide.

    Args:
        image: In mode "RGB" or "L".
        size: Side of the result.
        crop_pct: Part of the shorter side that is kept, at most 1.
        interpolation: "bicubic" or "bilinear".
        crop_mode: "center", or "squash": both sides are resized as the shorter one is.

    Returns:
        Shape: (in_chans, size, size), uint8.
    """
    short = math.floor(size / crop_pct)
    if crop_mode == "squash":
        resized = (short, short)
    else:
        resized = tuple(int(short * side / min(image.size)) for side in image.size)
    left, top = (int(round((side - size) / 2)) for side in resized)
    part = left, top, left + size, top + size
    if max(resized) <= _LONGEST * short:
        return to_pixels(image.resize(resized, INTERPOLATIONS[interpolation]).crop(part))
    # At the cost of the part, however long the image. Pillow may take rows and columns in the other
    # order then, and rounds in between: on noise values differ by up to 24 of 255.
    edges = zip(part, image.size * 2, resized * 2, strict=True)
    box = tuple(edge * side / new for edge, side, new in edges)
    return to_pixels(image.resize((size, size), INTERPOLATIONS[interpolation], box=box))


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


def random_square_crop(
    image: Image.Image,
    whole: int,
    size: int,
    interpolation: str,
    generator: np.random.Generator,
) -> Image.Image:
    """A random part of an image that was brought to a square (arXiv 1912.11370, section 3.3).

    Args:
        image: In mode "RGB" or "L".
        whole: Side of the square, at least `size`.
        size: Side of the result.
        interpolation, generator: As for `random_resized_crop`.
    """
    if interpolation == "random":
        interpolation = generator.choice(list(INTERPOLATIONS))
    image = image.resize((whole, whole), INTERPOLATIONS[interpolation])
    left, top = (int(place) for place in generator.integers(whole - size + 1, size=2))
    return image.crop((left, top, left + size, top + size))


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
    # A very long image may have no such part: take the centre, as long as the ratio allows.
    w, h = min(width, round(height * ratio[1])), min(height, round(width / ratio[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def to_pixels(image: Image.Image) -> np.ndarray:
    """The pixels of an image in mode "RGB" or "L". Shape: (in_chans, height, width), uint8."""
    return np.ascontiguousarray(np.atleast_3d(np.array(image)).transpose(2, 0, 1))
