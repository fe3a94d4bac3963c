"""AutoAugment (arXiv 1805.09501) as timm has it, on pictures, with timm's notation.

The policy is the paper's for ImageNet, as kornia has it in a table. kornia's own class draws one
part of it for a whole batch, where timm and the paper draw one for each picture.
"""

import re
from collections.abc import Sequence

import numpy as np
from PIL import Image

from resmlp_mt.data.operations import Operations
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_extra

# kornia's name: ours, where it is not the same in capitals.
_NAMES = {"posterize": "PosterizeOriginal"}


class AutoAugment:
    """One of 25 pairs of operations, each done with a probability and a magnitude of its own.

    Args:
        notation: original[-mstdS]: the magnitudes are normal around those of the table, with
            standard deviation S (0), cut off at 0 and 10.
        mean, interpolation: As for `Operations`.

    Raises:
        UserError: If the notation says something else, or kornia is missing.
    """

    def __init__(self, notation: str, mean: Sequence[float], interpolation: str):
        match = re.fullmatch(r"original(?:-mstd(\d+(?:\.\d+)?))?", notation)
        if not match:
            raise UserError(
                f"--aa {notation}: AutoAugment is original or, as an example, original-mstd0.5"
            )
        self.operations = Operations(mean, interpolation, float(match[1] or 0))
        name = "kornia.augmentation.auto.autoaugment.autoaugment"
        table = import_extra(name, "training on images").imagenet_policy
        self.policy = [[(_rename(n), p, m or 0) for n, p, m in pair] for pair in table]

    def __call__(self, image: Image.Image, generator: np.random.Generator) -> Image.Image:
        """Augment a picture in mode "RGB" or "L"; randomness comes from the generator."""
        for name, probability, magnitude in self.policy[generator.integers(len(self.policy))]:
            if generator.random() < probability:
                image = self.operations.apply(name, image, magnitude, generator)
        return image


def _rename(name: str) -> str:
    return _NAMES.get(name) or "".join(word.capitalize() for word in name.split("_"))
