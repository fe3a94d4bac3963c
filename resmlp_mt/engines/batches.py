"""What is computed together, as it comes."""

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
