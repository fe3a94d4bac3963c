"""RandAugment, against timm itself where it can be imported, and against its figures otherwise.

The figures in randaugment.csv are timm's; `python tests/data/test_randaugment.py` prints them anew.
"""

import csv
import random
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image, ImageOps

from resmlp_mt.data.randaugment import OPERATIONS, RandAugment

MEAN = (0.485, 0.456, 0.406)
FIGURES = Path(__file__).with_name("randaugment.csv")
GROWING = ("Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness")
POSTERIZE = ImageOps.posterize
both_scales = pytest.mark.parametrize("inc", [0, 1])


@cache
def picture() -> Image.Image:
    """Wider than high, smooth and noisy, of all colours but not of the whole range."""
    y, x = np.mgrid[:40, :56]
    red, green = 30 + 3 * x, 20 + 5 * y
    blue = np.random.default_rng(1).integers(40, 200, x.shape)
    return Image.fromarray(np.stack([red, green, blue], 2).astype(np.uint8))


def change(image: Image.Image) -> float:
    """Mean change of a pixel of `picture`, in grey levels."""
    return float(np.abs(np.asarray(image).astype(int) - np.asarray(picture())).mean())


def ours(name: str, magnitude: float, inc: int) -> set[bytes]:
    """All that an operation can make of the picture: it has one or two directions."""
    policy = RandAugment(f"rand-m{magnitude}-inc{inc}", MEAN, "bicubic")
    draw = np.random.default_rng(1)
    return {policy.apply(name, picture(), draw).tobytes() for _ in range(12)}


def timms(name: str, magnitude: float, inc: int) -> set[bytes]:
    """The same of timm's operation."""
    from timm.data.auto_augment import AugmentOp

    name += "Increasing" if inc and name in GROWING else "Rel" if "Translate" in name else ""
    fill = tuple(round(255 * value) for value in MEAN)
    flags = dict(img_mean=fill, interpolation=Image.Resampling.BICUBIC)
    operation = AugmentOp(name, prob=1.0, magnitude=magnitude, hparams=flags)
    random.seed(1)
    with patch.object(ImageOps, "posterize", posterize):
        return {operation(picture()).tobytes() for _ in range(12)}


def posterize(image: Image.Image, bits: int) -> Image.Image:
    """Pillow's; timm asks it to keep 0 bits, too, which Pillow refuses from 13 on."""
    return POSTERIZE(image, bits) if bits else Image.new(image.mode, image.size)


def change_of_all(outcomes: set[bytes]) -> float:
    changes = [change(Image.frombytes("RGB", picture().size, pixels)) for pixels in outcomes]
    return sum(changes) / len(changes)


def figures_of_timm():
    """The rows of randaugment.csv."""
    for inc in (0, 1):
        for name in OPERATIONS:
            for magnitude in (1, 5, 9):
                yield name, inc, magnitude, f"{change_of_all(timms(name, magnitude, inc)):.3f}"


@both_scales
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_timm_pixel_for_pixel(timm, name, inc):
    for magnitude in range(11):
        assert ours(name, magnitude, inc) == timms(name, magnitude, inc)


def test_operations_change_pixels_as_much_as_those_of_timm():
    with open(FIGURES, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 3 * len(OPERATIONS)
    for row in rows:
        outcomes = ours(row["operation"], int(row["magnitude"]), int(row["inc"]))
        # Pillow may round otherwise in another version.
        assert change_of_all(outcomes) == pytest.approx(float(row["change"]), abs=0.1), row


def test_each_of_the_drawn_operations_is_done_half_of_the_time():
    policy, draw = RandAugment("rand-m9-mstd0.5-inc1", MEAN, "bicubic"), np.random.default_rng(1)
    done = []
    policy.apply = lambda name, image, generator: done[-1].append(name) or image
    for _ in range(6000):
        done.append([])
        policy(picture(), draw)
    shares = np.bincount([len(names) for names in done]) / 6000
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    counts = [sum(names.count(name) for names in done) for name in OPERATIONS]
    assert np.array(counts) / sum(counts) == pytest.approx(1 / len(OPERATIONS), abs=0.02)
    assert any(names[0] == names[-1] for names in done if len(names) == 2)  # drawn anew each time


@pytest.mark.parametrize(
    "notation, mean, deviation, least, most",
    [
        ("rand-m5", 55, 0, 55, 55),
        ("rand-m5-mstd1", 55, 11, 0, 110),
        ("rand-m9-mstd0.5", 99, 5.5, 0, 110),
        ("rand-m8-mstd101", 44, 25.4, 0, 88),  # uniform
        ("rand", 110, 0, 110, 110),
    ],
)
def test_magnitudes_are_drawn_around_m(notation, mean, deviation, least, most):
    policy, draw = RandAugment(notation, MEAN, "bicubic"), np.random.default_rng(1)
    black = Image.new("RGB", (1, 1))
    # What SolarizeAdd adds to black is 11 grey levels a magnitude, rounded down.
    levels = [policy.apply("SolarizeAdd", black, draw).getpixel((0, 0))[0] for _ in range(2000)]
    assert np.mean(levels) == pytest.approx(mean, abs=1.5)
    assert np.std(levels) == pytest.approx(deviation, abs=0.8)
    assert min(levels) >= least and max(levels) <= most
    # Cut off at 10, not drawn again.
    assert (levels.count(110) > 10) == (notation in ("rand-m9-mstd0.5", "rand"))


def test_the_mean_colour_moves_in_from_outside_in_colour_and_in_grey():
    for image, mean in ((picture(), MEAN), (picture().convert("L"), MEAN[:1])):
        policy = RandAugment("rand-m10", mean, "bicubic")
        moved = policy.apply("TranslateX", image, np.random.default_rng(1))
        fill = np.round(255 * np.array(mean)).reshape(1, 1, -1)
        pixels = np.atleast_3d(np.asarray(moved))
        outside = (pixels == fill).all(2).all(0)
        assert 24 <= outside.sum() <= 26  # 45% of 56 columns
        for name in OPERATIONS:
            assert policy.apply(name, image, np.random.default_rng(1)).mode == image.mode


if __name__ == "__main__":
    print("operation,inc,magnitude,change")
    for row in figures_of_timm():
        print(*row, sep=",")
