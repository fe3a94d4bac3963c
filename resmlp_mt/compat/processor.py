"""Abilities of the processor."""

import torch


def multiplies_bf16() -> bool:
    """Whether oneDNN, which multiplies for torch, finds instructions for it in this processor."""
    check = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return check is None or check()
