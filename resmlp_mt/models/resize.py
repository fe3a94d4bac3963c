"""Weights for one image size, interpolated for another.

A mixing matrix maps the patches of a grid to the patches of the same grid, so that both its rows
and its columns lie on a grid of two dimensions, and all four are interpolated:
A' = U A D. U interpolates what A gives from the old grid to the new one (bicubic; antialiased where
the grid shrinks). D averages the patches of the new grid to those of the old one: U transposed,
with each row scaled to the sum 1. For n times as many patches, each column gets about 1/n of the
weight, and what A makes of a constant image stays exactly as it was.
"""

import logging
import math
import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

logger = logging.getLogger(__name__)

_KERNEL = "embed.proj.weight"
_PATCH_MLP = re.compile(r"blocks\.\d+\.mix_tokens\.fc[12]\.(weight|bias)")
# For each grid that a weight lies on, rows before columns: are its patches read or written?
_GRIDS = {
    re.compile(r"blocks\.\d+\.mix_tokens\.matrix\.weight"): ("written", "read"),  # (1, N, N)
    re.compile(r"blocks\.\d+\.mix_tokens\.matrix\.bias"): ("written",),  # (1, N)
    re.compile(r"pool\.layers\.\d+\.aggregate\.weight"): ("read",),  # (1, N)
}


def resize_matrices(state_dict: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Interpolate what depends on the number of patches to the grid of `model`, and log it.

    What does not fit for another reason is left as it is, for `load_state_dict` to report.

    Args:
        state_dict: Weights of the same model for square images of any size.
        model: A `ResMLPImageModel`.

    Returns:
        The weights for the model's grid; those given where the sizes are equal.

    Raises:
        ValueError: If a part cannot be interpolated.
    """
    own = model.state_dict()
    unlike = [n for n, t in state_dict.items() if n in own and t.shape != own[n].shape]
    if _KERNEL in unlike:
        _check_patch_size(state_dict[_KERNEL], own[_KERNEL])
    if any(map(_PATCH_MLP.fullmatch, unlike)):
        raise ValueError(
            "the weights are of another image size, and the token mixer 'mlp' cannot be "
            "interpolated: the size of its hidden layer depends on the number of patches"
        )
    resized, old = {}, None
    for name in unlike:
        weight = state_dict[name]
        grids = next((grids for pattern, grids in _GRIDS.items() if pattern.fullmatch(name)), None)
        if grids is None or weight.shape != (1, *weight.shape[-1:] * len(grids)):
            continue
        old = _square(weight.size(-1))
        resized[name] = _resize(weight, grids, old, model.grid).view(own[name].shape)
    if not resized:
        return state_dict
    logger.warning(
        "mixing matrices interpolated from %d x %d to %d x %d patches", *old, *model.grid
    )
    return {**state_dict, **resized}


def _check_patch_size(kernel: Tensor, own: Tensor) -> None:
    if kernel.dim() == own.dim() and kernel.shape[2:] != own.shape[2:]:
        sizes = [f"{weight.size(2)} x {weight.size(3)}" for weight in (kernel, own)]
        raise ValueError(
            f"the weights are for patches of {sizes[0]} pixels, the model for {sizes[1]}: patch "
            f"embeddings are not interpolated; build the model with --patch-size {kernel.size(2)}"
        )


def _square(positions: int) -> tuple[int, int]:
    side = math.isqrt(positions)
    if side * side != positions:
        raise ValueError(
            f"the weights are for {positions} patches, which are no square grid: they cannot be "
            "interpolated to another image size"
        )
    return side, side


def _resize(
    weight: Tensor, grids: tuple[str, ...], old: tuple[int, int], new: tuple[int, int]
) -> Tensor:
    """Resize each of the grids that the weight lies on. (1, N, ...) -> (H', W', ...)."""
    x = weight.double().reshape(old * len(grids))
    for dim in range(x.dim()):
        up = _interpolation(old[dim % 2], new[dim % 2]).to(x)
        matrix = up if grids[dim // 2] == "written" else _averaging(up).t()
        x = torch.tensordot(x, matrix, dims=([dim], [1])).movedim(-1, dim)
    return x.to(weight.dtype).contiguous()


def _interpolation(old: int, new: int) -> Tensor:
    """U along one side of the grid. Every row sums to 1. (new, old)."""
    # As rows of an image, the old positions being its channels: torch 2.13 antialiases wrongly
    # where there is one channel and one column.
    image = torch.eye(old, dtype=torch.float64).view(1, old, 1, old)
    up = F.interpolate(
        image, size=(1, new), mode="bicubic", align_corners=False, antialias=new < old
    )
    return up.view(old, new).t()


def _averaging(up: Tensor) -> Tensor:
    """D for U along the same side. Every row sums to 1. (new, old) -> (old, new)."""
    return up.t() / up.sum(0).unsqueeze(1)
