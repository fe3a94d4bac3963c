"""Batches of items, as the items come."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def fill(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield batches; where an item raises an error, the items before it come first."""
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
