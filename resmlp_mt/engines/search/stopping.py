"""Ends a search from outside, between two steps, when nobody waits for it any more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Stopped(Exception):
    """The search was ended from outside."""


_unwanted: ContextVar[Callable[[], bool] | None] = ContextVar("unwanted", default=None)


@contextmanager
def stop_when(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Searches in this block and thread end with `Stopped` once `unwanted` returns True.

    Args:
        unwanted: Asked between steps, often; it has to be quick.
    """
    token = _unwanted.set(unwanted)
    try:
        yield
    finally:
        _unwanted.reset(token)


def check_wanted() -> None:
    """End the search if nobody waits for it; searches call this every few steps.

    Raises:
        Stopped: If nobody waits for it any more.
    """
    unwanted = _unwanted.get()
    if unwanted is not None and unwanted():
        raise Stopped
