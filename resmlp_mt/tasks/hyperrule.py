"""BiT's HyperRule (arXiv 1912.11370, section 3.3): from the data to how it is fine-tuned on."""

import statistics
from dataclasses import dataclass

from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.data.pixels import BrokenImage

# The differences between the paper and the code that came with it.
VERSIONS = ("paper", "code")
BATCH = 512
# Images below which a task is small or medium; all others are large.
_SMALL, _MEDIUM = 20_000, 500_000
# By version: to what larger images are resized, and what is cut out of them.
_LARGE_IMAGES = {"paper": (448, 384), "code": (512, 480)}
# Supports of the learning rate. The paper divides it after 30, 60 and 90% of the updates, which the
# code does but for small tasks. The warm-up is the code's.
_SUPPORTS = {
    "small": (100, 150, 300, 450, 500),
    "medium": (500, 3000, 6000, 9000, 10_000),
    "large": (500, 6000, 12_000, 18_000, 20_000),
}
_SMALL_IN_CODE = (100, 200, 300, 400, 500)


@dataclass(frozen=True)
class Rule:
    """The choices of the rule.

    Attributes:
        size: "small", "medium" or "large".
        resize: Side of the square to which training images are brought.
        crop: Side of the random part of it.
        supports: Updates: the end of the warm-up, where the learning rate is divided by 10, and the
            end.
        mixup: Its alpha.
    """

    size: str
    resize: int
    crop: int
    supports: tuple[int, ...]
    mixup: float


def choose_rule(images: int, area: float, version: str = "paper") -> Rule:
    """Apply the rule.

    Args:
        images: Number of training images.
        area: Pixels of one of them.
        version: In VERSIONS.
    """
    size = "small" if images < _SMALL else "medium" if images < _MEDIUM else "large"
    resize, crop = (160, 128) if area < 96 * 96 else _LARGE_IMAGES[version]
    in_code = version == "code" and size == "small"
    supports = _SMALL_IN_CODE if in_code else _SUPPORTS[size]
    return Rule(size, resize, crop, supports, 0.0 if size == "small" else 0.1)


def measure_images(folder: ImageFolder, most: int = 50) -> tuple[int, int]:
    """Width and height of the image of median area among some of a folder.

    Args:
        folder: The images.
        most: The number that is looked at. Broken ones are passed over, as training does.

    Raises:
        BrokenImage: If none of them is whole.
    """
    sizes = []
    for i in range(0, len(folder), max(len(folder) // most, 1)):
        try:
            sizes.append(folder.open(i).size)
        except BrokenImage as error:
            fault = error
    if not sizes:
        raise fault
    middle = statistics.median_low(width * height for width, height in sizes)
    return next(size for size in sizes if size[0] * size[1] == middle)
