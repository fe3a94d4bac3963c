"""The beams of a sentence share one row of the memory, in the encoder's output and in the state."""

import torch
from torch import Tensor


def choose_memory(rows: Tensor) -> Tensor:
    """Which rows of the memory to keep, in turn.

    Args:
        rows: The row of the memory that each row of the decoder attends to. (R,).

    Returns:
        One for the beams of a sentence, where all sentences have equally many; otherwise `rows`.
    """
    kept, counts = rows.unique_consecutive(return_counts=True)
    return kept if counts.min() == counts.max() else rows


def is_all(kept: Tensor, memory: Tensor) -> bool:
    """Whether all rows of the memory are kept, as they are."""
    return torch.equal(kept, torch.arange(len(memory), device=kept.device))
