"""Cheap tensors, computed again in the backward pass in place of being kept for it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

# Tells the hooks around. Older versions of torch do not have it, and it has no public name.
_find_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


def run_block(block: nn.Module, *inputs) -> Tensor:
    """Run a block, of which the backward pass keeps what it needs."""
    return block(*inputs)


def recompute_block(block: nn.Module, *inputs) -> Tensor:
    """Run a block. The graph keeps only its inputs, and the backward pass computes it again.

    What dropout draws is the same the second time.
    """
    if not torch.is_grad_enabled():
        return block(*inputs)
    return checkpoint(block, *inputs, use_reentrant=False)


def recompute(tensor: Tensor, compute: Callable[[], Tensor]) -> AbstractContextManager:
    """Operations within it keep `compute` for the backward pass where they would keep `tensor`.

    Args:
        tensor: The tensor that is not kept. The caller holds it to the end of the block: another
            tensor could lie in its place.
        compute: Gives the same values once more. The graph holds it until the backward pass, and
            what it refers to.
    """
    # Checkpointing and what moves tensors elsewhere have hooks of their own, which do more.
    if _find_hooks is not None and _find_hooks(False) is not None:
        return nullcontext()
    # Its address, not the tensor, which the graph would hold with these functions.
    try:
        place = tensor.data_ptr(), tensor.numel()
    except RuntimeError:  # it lies nowhere, as within torch.func: it is kept as usual
        return nullcontext()

    def pack(kept: Tensor) -> Tensor | torch.Size:
        return kept.size() if (kept.data_ptr(), kept.numel()) == place else kept

    def unpack(kept: Tensor | torch.Size) -> Tensor:
        if not isinstance(kept, torch.Size):
            return kept
        with torch.no_grad():
            return compute().view(kept)

    return saved_tensors_hooks(pack, unpack)
