"""ImageNet-ReaL (arXiv 2006.07159): several labels for an image of ImageNet's validation set."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from resmlp_mt.errors import UserError

_NUMBER = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def read_real_labels(path: str | Path, names: Sequence[str], num_classes: int) -> Tensor:
    """The labels of each image.

    Args:
        path: real.json as published: a list of the labels of each image, in the order of their
            numbers, which begin at 1. Images that nothing fits have none.
        names: The image files, which end as ILSVRC2012_val_00000001.JPEG.
        num_classes: K.

    Returns:
        True where a class is a label. (len(names), K).

    Raises:
        UserError: If the file is no such list, or does not fit the images or the classes.
    """
    labels = _read(Path(path))
    found = torch.zeros(len(names), num_classes, dtype=torch.bool)
    for i, name in enumerate(names):
        match = _NUMBER.search(Path(name).name)
        if not match:
            raise UserError(f"--real-labels: {name} has no number, as ILSVRC2012_val_00000001.JPEG")
        number = int(match[1])
        if not 1 <= number <= len(labels):
            raise UserError(f"{path} has {len(labels):,} images, and none for {name}")
        of_image = labels[number - 1]
        if of_image and not 0 <= min(of_image) <= max(of_image) < num_classes:
            raise UserError(
                f"{path}: image {number} has the labels {of_image}, the model {num_classes} classes"
            )
        found[i, of_image] = True
    return found


def _read(path: Path) -> list[list[int]]:
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--real-labels: {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"--real-labels: {path} is no JSON: {error}") from None
    whole = isinstance(labels, list) and all(
        isinstance(row, list) and all(type(label) is int for label in row) for row in labels
    )
    if not whole:
        raise UserError(f"--real-labels: {path} is not a list of labels, as [[65], [], [3, 4]]")
    return labels
