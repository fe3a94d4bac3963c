"""Ends a search from outside, between two steps, when nobody waits for it any more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Stopped(Exception):
    """The search was ended from outside."""


_unwanted: ContextVar[Callable[[], bool] | None] = ContextVar("unwanted", default=None)


@contextmanager
def stop_when(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Searches in this block and thread end with `Stopped` once this returns True.

    Args:
        unwanted: Asked between steps, often; it has to be quick.
    """
    token = _unwanted.set(unwanted)
    try:
        yield
    finally:
        _unwanted.reset(token)


def check_wanted() -> None:
    """A search calls it every few steps.

    Raises:
        Stopped: If the search is wanted no more.
    """
    unwanted = _unwanted.get()
    if unwanted is not None and unwanted():
        raise Stopped
