"""RandAugment (arXiv 1909.13719) as timm has it, on pictures, with timm's notation.

timm's differs from the paper's, and from that of other libraries: each operation that was drawn is
left out half of the time, and the magnitude counts to 10. Published recipes mean timm's.
"""

import re
from collections.abc import Sequence

import numpy as np
from PIL import Image

from resmlp_mt.data.operations import COLOURS, HIGHEST, WARPS, Operations
from resmlp_mt.errors import UserError

OPERATIONS = (*(name for name in COLOURS if name != "PosterizeOriginal"), "Rotate", *WARPS)


class RandAugment:
    """Random operations of random strength, of the same distribution as timm's.

    Args:
        notation: rand[-mM][-nN][-pP][-mstdS][-inc1]. N operations (2) are drawn with replacement
            and each is done with probability P (0.5) at magnitude M of 10 (10), or at one from a
            normal distribution around M with standard deviation S (0), cut off at 0 and 10. With
            S above 100 it is uniform from 0 to M. "inc1": all operations grow with the magnitude.
        mean, interpolation: As for `Operations`.

    Raises:
        UserError: If the notation says something else.
    """

    def __init__(self, notation: str, mean: Sequence[float], interpolation: str):
        values = _parse(notation)
        self.magnitude = float(values["m"])
        self.count, self.probability = int(values["n"]), float(values["p"])
        increasing = values["inc"] == "1"
        self.operations = Operations(mean, interpolation, float(values["mstd"]), increasing)

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
        return self.operations.apply(name, image, self.magnitude, generator)


def _parse(notation: str) -> dict[str, str]:
    values = {"m": "10", "n": "2", "p": "0.5", "mstd": "0", "inc": "0"}
    for part in notation.split("-")[1:]:
        match = re.fullmatch(r"(mstd|inc|m|n|p)(\d+(?:\.\d+)?)", part)
        if not match:
            raise UserError(f"--aa {notation}: {part} is not one of mM, nN, pP, mstdS, inc0, inc1")
        values[match[1]] = match[2]
    if float(values["m"]) > HIGHEST:
        raise UserError(f"--aa {notation}: m must be at most {HIGHEST}")
    if not values["n"].isdigit() or not 1 <= int(values["n"]) <= len(OPERATIONS):
        raise UserError(f"--aa {notation}: n must be 1 to {len(OPERATIONS)} operations")
    if float(values["p"]) > 1:
        raise UserError(f"--aa {notation}: p is a probability")
    if values["inc"] not in ("0", "1"):
        raise UserError(f"--aa {notation}: inc must be 0 or 1")
    return values
