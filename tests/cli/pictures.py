"""Pictures of three classes that a small model learns in seconds."""

from pathlib import Path

import numpy
from PIL import Image

# What tells them apart: red on the left, green above, blue all over.
CLASSES = ("above", "left", "over")
SIDE = 16


def draw(name: str, generator: numpy.random.Generator) -> Image.Image:
    pixels = generator.integers(0, 200, (SIDE, SIDE, 3), dtype=numpy.uint8)
    if name == "above":
        pixels[: SIDE // 2, :, 1] += 40
    elif name == "left":
        pixels[:, : SIDE // 2, 0] += 40
    else:
        pixels[:, :, 2] += 40
    return Image.fromarray(pixels)


def draw_pictures(folder: Path, counts: dict[str, int], classes=CLASSES) -> None:
    """Write folder/SPLIT/CLASS/NUMBER.png, `counts` of each class for each split."""
    generator = numpy.random.default_rng(1)
    for split, count in counts.items():
        for name in classes:
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                draw(name, generator).save(folder / split / name / f"{i}.png")
