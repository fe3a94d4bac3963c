"""The old names of weights in checkpoints, and those of today.

Layers were numbered, and a model of images had its blocks and its stem without the names of today.
"""

import re
from collections.abc import Mapping

from torch import Tensor

# The prefix of a number, and the layers that had these numbers.
_NUMBERED = {
    re.compile(r"(.+\.)?(blocks|layers)\.\d+\.mix_channels\."): {"0": "fc1", "3": "fc2"},
    re.compile(r"blocks\.\d+\.mix_tokens\."): {"0": "spatial", "1": "pointwise"},
    re.compile(r"head\.mlp\."): {"0": "fc1", "2": "fc2", "4": "fc3"},
}
# A model of images had one stage, and no name for it.
_OLD_STEM = "embed.proj.weight"
_IMAGE_PARTS = {
    re.compile(r"^embed\.(?=proj\.)"): "stem.",
    re.compile(r"^(?=blocks\.\d+\.(norm|scale|mix)_)"): "stages.0.",
}


def rename(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights by the names of today, in the same order.

    Names of today, and those of other models, stay as they are.

    Args:
        weights: A state dict.
    """
    names = {name: _name_today(name) for name in weights}
    if _OLD_STEM in names:
        names = {name: _name_image_part(today) for name, today in names.items()}
    return {names[name]: weight for name, weight in weights.items()}


def _name_image_part(name: str) -> str:
    for old, today in _IMAGE_PARTS.items():
        if old.match(name):
            return old.sub(today, name)
    return name


def _name_today(name: str) -> str:
    for before, layers in _NUMBERED.items():
        if match := before.match(name):
            number, dot, rest = name[match.end() :].partition(".")
            return f"{match[0]}{layers.get(number, number)}{dot}{rest}"
    return name
