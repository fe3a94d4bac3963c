"""The published arrays of BiT (google-research/big_transfer, .npz), with timm's names."""

import re
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from resmlp_mt.errors import UserError, name_some

_UNIT = re.compile(r"block(\d+)/unit(\d+)/([abc])/(.+)")
# The words before the last one of a name: timm's name for them.
_OUTER = {
    "root_block/standardized_conv2d": "stem.conv",
    "group_norm": "norm",
    "head/conv2d": "head.fc",
}
_LEAVES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def name_as_timm(arrays: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Give the arrays timm's names and shapes.

    Args:
        arrays: By their published names, which begin with resnet/.

    Raises:
        UserError: If an array is none of BiT's.
    """
    names = {name: _rename(name.removeprefix("resnet/")) for name in arrays}
    if unknown := [name for name, found in names.items() if found is None]:
        raise UserError(f"not the published arrays of BiT; unknown: {name_some(unknown, 10)}")
    return {names[name]: _reorder(array) for name, array in arrays.items()}


def _rename(name: str) -> str | None:
    if match := _UNIT.fullmatch(name):
        stage, block, part, rest = match.groups()
        number = "abc".index(part) + 1
        before, _, leaf = rest.rpartition("/")
        layers = {
            "standardized_conv2d": f"conv{number}",
            "group_norm": f"norm{number}",
            "proj/standardized_conv2d": "downsample.conv",
        }
        outer = f"stages.{int(stage) - 1}.blocks.{int(block) - 1}."
    else:
        before, _, leaf = name.rpartition("/")
        layers, outer = _OUTER, ""
    if before not in layers or leaf not in _LEAVES:
        return None
    return f"{outer}{layers[before]}.{_LEAVES[leaf]}"


def _reorder(array: np.ndarray) -> Tensor:
    # Kernels are (rows, columns, in, out).
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.permute(3, 2, 0, 1).contiguous() if tensor.dim() == 4 else tensor.reshape(-1)
