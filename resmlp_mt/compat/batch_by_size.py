"""Batches by size, for a fairseq without compiled code: `fairseq.data.data_utils_fast` in Python.

`fairseq_wheel.py` puts a copy of this file there, so it knows nothing of ours. Its batches are
those of the compiled module.
"""

import numpy as np


def batch_by_size_vec(
    indices: np.ndarray,
    num_tokens_vec: np.ndarray,
    max_tokens: int,
    max_sentences: int,
    bsz_mult: int,
) -> list[np.ndarray]:
    """Cut indices into batches, which are slices of them.

    Args:
        indices: (N,).
        num_tokens_vec: Tokens of each. (N,).
        max_tokens: As many as a batch has with its padding; 0 or less for no limit.
        max_sentences: As many indices as a batch has; 0 or less for no limit.
        bsz_mult: A batch has fewer, or a multiple of it, unless the limits leave no choice.

    Raises:
        AssertionError: If one alone has more tokens than a batch may.
    """
    if len(indices) == 0:
        return []
    assert max_tokens <= 0 or num_tokens_vec.max() <= max_tokens, (
        f"Sentences lengths should not exceed max_tokens={max_tokens}"
    )
    most_tokens = max_tokens if max_tokens > 0 else float("inf")
    most_sentences = max_sentences if max_sentences > 0 else float("inf")
    # A batch from `start` that may end at `end`, and what was read behind that.
    ends, start, end, longest, longest_behind = [], 0, 0, 0, 0
    for place, tokens in enumerate(num_tokens_vec.tolist(), start=1):
        longest_behind = max(longest_behind, tokens)
        sentences, together = place - start, max(longest, longest_behind)
        if sentences > most_sentences or sentences * together > most_tokens:
            ends.append(end)
            # What was read behind becomes a batch, of which the last one may be too much.
            if longest_behind * (place - end) > most_tokens:
                end, longest_behind = place - 1, tokens
                ends.append(end)
            start, end, longest, longest_behind = end, place, longest_behind, 0
        elif sentences < bsz_mult or sentences % bsz_mult == 0:
            end, longest, longest_behind = place, together, 0
    if end < len(indices):
        ends.append(end)
    return np.split(indices, ends)


def batch_by_size_fn(
    indices: np.ndarray, num_tokens_fn, max_tokens: int, max_sentences: int, bsz_mult: int
) -> list[np.ndarray]:
    """`batch_by_size_vec` with a function that counts the tokens of an index."""
    tokens = np.fromiter(map(num_tokens_fn, indices), np.int64, len(indices))
    return batch_by_size_vec(indices, tokens, max_tokens, max_sentences, bsz_mult)


def batch_fixed_shapes_fast(indices, num_tokens_fn, fixed_shapes_sorted) -> list:
    """Batches of fixed shapes, which TPUs want.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError("batches of fixed shapes, as for TPUs, need fairseq's compiled code")
