"""What is cheap to compute is computed again in the backward pass, and not kept for it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


def recompute(tensor: Tensor, compute: Callable[[], Tensor]) -> AbstractContextManager:
    """Operations within it keep `compute` for the backward pass where they would keep `tensor`.

    Args:
        tensor: What is not kept.
        compute: Gives the same values once more, without gradients.
    """
    # Where it lies, not the tensor: the graph holds both functions until the backward pass.
    try:
        place = tensor.data_ptr(), tensor.numel()
    except RuntimeError:  # it lies nowhere, as within torch.func: it is kept as usual
        return nullcontext()

    def pack(kept: Tensor) -> Tensor | torch.Size:
        return kept.size() if (kept.data_ptr(), kept.numel()) == place else kept

    def unpack(kept: Tensor | torch.Size) -> Tensor:
        return compute().view(kept) if isinstance(kept, torch.Size) else kept

    return saved_tensors_hooks(pack, unpack)
