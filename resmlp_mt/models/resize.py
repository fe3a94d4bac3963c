"""Weights for one image size, brought to another.

Parts of a model whose weights depend on the grid have `resize(weights, old, new)`. It takes their
weights for one grid and returns them for another, or refuses with a `UserError`. Parts without it
fit any grid. Where a grid cannot be told from its number of positions, which is one of the sizes of
the weights, the part has `find_grid(weights)`.
"""

import logging
import math
from collections.abc import Iterator

from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.grids import Grid, square_grid

logger = logging.getLogger(__name__)

_KERNEL = "stem.proj.weight"


def resize_weights(state_dict: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Bring weights that depend on the number of patches to the grid of `model`, and log it.

    Weights that do not fit for another reason stay as they are, for `load_state_dict` to report.

    Args:
        state_dict: Weights of the same model for square images of any size.
        model: An `ImageModel`.

    Returns:
        The weights for the model's grid; those given where the sizes are equal.

    Raises:
        UserError: If a part cannot be brought to another grid.
    """
    own = model.state_dict()
    if _KERNEL in state_dict and _KERNEL in own:
        _check_patch_size(state_dict[_KERNEL], own[_KERNEL])
    resized, changes = {}, []
    for prefix, part, new in _resizable(model):
        weights = {n: state_dict[prefix + n] for n in part.state_dict() if prefix + n in state_dict}
        if (old := _find_grid(part, weights, new)) != new:
            resized |= {prefix + n: t for n, t in part.resize(weights, old, new).items()}
            changes.append((*old, *new))
    if not changes:
        return state_dict
    logger.warning("mixing matrices interpolated from %d x %d to %d x %d patches", *changes[0])
    return {**state_dict, **resized}


def _resizable(model: nn.Module) -> Iterator[tuple[str, nn.Module, Grid]]:
    """The parts that depend on a grid: what their weights' names begin with, and the grid."""
    grids = {f"stages.{i}.": stage.grid for i, stage in enumerate(model.stages)}
    grids["pool."] = model.stages[-1].grid
    for name, part in model.named_modules():
        for prefix, grid in grids.items():
            if name.startswith(prefix) and hasattr(part, "resize"):
                yield f"{name}.", part, grid


def _find_grid(part: nn.Module, weights: dict[str, Tensor], own: Grid) -> Grid:
    """The grid that weights are for: the part's own where they do not tell."""
    if hasattr(part, "find_grid"):
        return part.find_grid(weights) or own
    for name, weight in weights.items():
        for found, expected in zip(weight.shape, part.state_dict()[name].shape, strict=False):
            if found != expected == math.prod(own):
                return square_grid(found)
    return own


def _check_patch_size(kernel: Tensor, own: Tensor) -> None:
    if kernel.dim() == own.dim() and kernel.shape[2:] != own.shape[2:]:
        sizes = [f"{weight.size(2)} x {weight.size(3)}" for weight in (kernel, own)]
        raise UserError(
            f"the weights are for patches of {sizes[0]} pixels, the model for {sizes[1]}: patch "
            f"embeddings are not interpolated; build the model with --patch-size {kernel.size(2)}"
        )
