"""Weights for one image size, interpolated for another."""

import logging

from torch import Tensor, nn

logger = logging.getLogger(__name__)


def resize_matrices(state_dict: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Interpolate what depends on the number of patches to the grid of `model`, and log it.

    Args:
        state_dict: Weights of the same model for square images of any size.
        model: A `ResMLPImageModel`.

    Returns:
        The weights for the model's grid; those given where the sizes are equal.

    Raises:
        ValueError: If a part cannot be interpolated.
    """
    return state_dict
