"""Images cut to a square: the centre, or a part at random. Pillow and NumPy alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

# The part of an image that evaluation sees: its centre, or all of it, out of shape.
CROP_MODES = ("center", "squash")
LARGEST = 2**15 - 1  # side of the square that is cut out, in pixels
LEAST_KEPT = 0.01  # of the shorter side
# Of longer images evaluation resizes the part that it keeps alone.
_LONGEST = 4
INTERPOLATIONS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}

Augment = Callable[[Image.Image, np.random.Generator], Image.Image]


@dataclass(frozen=True)
class Cut:
    """The part of an image that a classifier sees in evaluation: the centre.

    The shorter side is resized to floor(image_size / crop_pct), then the centre is cut out, with
    the rounding of torchvision and timm. The pixels are theirs too, but for images that are more
    than 4 times as long as they are wide.

    Attributes:
        in_chans: 3, or 1 for grey images.
        image_size: Side of the square that is cut out.
        crop_pct: Part of the shorter side that is kept, at most 1.
        interpolation: "bicubic" or "bilinear".
        crop_mode: "center", or "squash": both sides are resized as the shorter one is.

    Raises:
        ValueError: If nothing can be cut so.
    """

    in_chans: int
    image_size: int
    crop_pct: float
    interpolation: str = "bicubic"
    crop_mode: str = CROP_MODES[0]

    def __post_init__(self):
        sizes = type(self.image_size) is int and 0 < self.image_size <= LARGEST
        part = LEAST_KEPT <= self.crop_pct <= 1
        known = self.interpolation in INTERPOLATIONS and self.crop_mode in CROP_MODES
        if not (sizes and part and known and self.in_chans in (1, 3)):
            raise ValueError(f"images cannot be cut so: {vars(self)!r:.99}")

    def __call__(
        self, image: Image.Image, generator: np.random.Generator | None = None
    ) -> np.ndarray:
        """Cut an image in mode "RGB" or "L"; nothing is random. (in_chans, S, S), uint8."""
        size, short = self.image_size, math.floor(self.image_size / self.crop_pct)
        if self.crop_mode == "squash":
            resized = (short, short)
        else:
            resized = tuple(int(short * side / min(image.size)) for side in image.size)
        left, top = (int(round((side - size) / 2)) for side in resized)
        part = left, top, left + size, top + size
        filtering = INTERPOLATIONS[self.interpolation]
        if max(resized) <= _LONGEST * short:
            return to_pixels(image.resize(resized, filtering).crop(part))
        # At the cost of the part, however long the image. Pillow may take rows and columns in the
        # other order then, and rounds in between: on noise values differ by up to 24 of 255.
        edges = zip(part, image.size * 2, resized * 2, strict=True)
        box = tuple(edge * side / new for edge, side, new in edges)
        return to_pixels(image.resize((size, size), filtering, box=box))


@dataclass(frozen=True)
class RandomPart:
    """A random part of an image, brought to a square (arXiv 1409.4842, section 6).

    Attributes:
        size: Side of the result.
        scale: Range of the part's share of the area.
        ratio: Range of its width over its height.
        interpolation: "bicubic", "bilinear", or "random": one of both.
        augment: Changes the square.
    """

    size: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: str = "bicubic"
    augment: Augment | None = None

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> np.ndarray:
        """Cut an image in mode "RGB" or "L". (in_chans, S, S), uint8."""
        filtering = draw_interpolation(self.interpolation, generator)
        left, top, width, height = _random_box(*image.size, self.scale, self.ratio, generator)
        box = (left, top, left + width, top + height)
        part = image.resize((self.size, self.size), filtering, box=box)
        return to_pixels(self.augment(part, generator) if self.augment else part)


@dataclass(frozen=True)
class SquarePart:
    """A random part of an image that was brought to a square (arXiv 1912.11370, section 3.3).

    Attributes:
        whole: Side of the square, at least `size`.
        size, interpolation, augment: As of `RandomPart`.
    """

    whole: int
    size: int
    interpolation: str = "bicubic"
    augment: Augment | None = None

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> np.ndarray:
        """Cut an image in mode "RGB" or "L". (in_chans, S, S), uint8."""
        filtering = draw_interpolation(self.interpolation, generator)
        image = image.resize((self.whole, self.whole), filtering)
        left, top = map(int, generator.integers(self.whole - self.size + 1, size=2))
        part = image.crop((left, top, left + self.size, top + self.size))
        return to_pixels(self.augment(part, generator) if self.augment else part)


@dataclass(frozen=True)
class Views:
    """Several parts of an image, for multi-crop (arXiv 2006.09882).

    Attributes:
        parts: How many of each kind.
    """

    parts: Sequence[tuple[int, RandomPart]]

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> np.ndarray:
        """Cut an image in mode "RGB" or "L". (V, in_chans, S, S), uint8."""
        return np.stack(
            [part(image, generator) for count, part in self.parts for _ in range(count)]
        )


def draw_interpolation(name: str, generator: np.random.Generator) -> Image.Resampling:
    """The way to resize of that name; for "random", one of both."""
    if name == "random":
        name = generator.choice(list(INTERPOLATIONS))
    return INTERPOLATIONS[name]


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
