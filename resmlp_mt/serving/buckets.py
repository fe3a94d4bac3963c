"""How many requests each key may still send in this minute."""

import time
from collections.abc import MutableSequence, Sequence
from threading import Lock

# Of each bucket: whose it is, how full it was, and when.
NUMBERS = 3
# Seconds to wait for them, which are held for microseconds.
_PATIENCE = 0.1


class Buckets:
    """A bucket of requests for each key, which fills again evenly.

    Args:
        numbers: `NUMBERS` a key. Several processes may share them. At first zero, or none: all
            buckets are full.
        lock: Guards them. A request is not counted where it stays locked.
        clock: Tells the time in seconds; of all processes alike.

    Attributes:
        marks: A number for each key, above 0. Where they change, keys that stay have what they had.
    """

    def __init__(
        self,
        numbers: MutableSequence[float] | None = None,
        lock=None,
        clock=time.monotonic,
    ):
        self.numbers = [] if numbers is None else numbers
        self.lock, self.clock = lock or Lock(), clock
        self.marks: Sequence[float] = ()

    def take(self, place: int, most: int) -> float:
        """Take a request out of the bucket of a key.

        Args:
            place: Of the key among `marks`.
            most: Requests that it may send in a minute.

        Returns:
            The seconds to wait where there is none.
        """
        # A worker that was killed meanwhile may hold it for ever.
        if not self.lock.acquire(timeout=_PATIENCE):
            return 0
        try:
            begin, end = NUMBERS * place, NUMBERS * (place + 1)
            if list(self.numbers[begin : begin + 1]) != [self.marks[place]]:
                self._move()
            mark, left, then = self.numbers[begin:end]
            now = self.clock()
            left = min(most, left + (now - then) * most / 60) if then else most
            wait = (1 - left) * 60 / most
            if wait <= 0:
                left -= 1
            self.numbers[begin:end] = [mark, left, now]
        finally:
            self.lock.release()
        return wait

    def _move(self) -> None:
        """Move each bucket to the place that its key has now."""
        numbers = list(self.numbers)
        marks, *values = (numbers[start::NUMBERS] for start in range(NUMBERS))
        known = dict(zip(marks, zip(*values, strict=True), strict=True))
        moved = [n for mark in self.marks for n in (mark, *known.get(mark, (0.0, 0.0)))]
        self.numbers[:] = moved + [0.0] * (len(numbers) - len(moved))
