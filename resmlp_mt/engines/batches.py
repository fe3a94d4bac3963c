"""What is computed together: inputs as they come, and sentences of similar lengths."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def fill(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield batches; where an item cannot be had, what was before it comes before the error."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def group(
    lengths: list[int], apart: list[bool], batch_tokens: int, alike: bool
) -> Iterator[list[int]]:
    """Yield the indices of sentences in batches, short ones first.

    Args:
        lengths: Of the sentences.
        apart: Which of them share no batch with the others.
        batch_tokens: Of a batch, padding included, unless it is a single sentence.
        alike: Whether all sentences of a batch have the same length.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (apart[i], lengths[i])):
        if batch and (
            apart[i] != apart[batch[0]]
            or (alike and lengths[i] > lengths[batch[0]])
            or lengths[i] * (len(batch) + 1) > batch_tokens
        ):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
