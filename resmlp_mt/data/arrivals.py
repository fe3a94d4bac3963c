"""Lines as they come: from files, pipes and terminals."""

import os
import select
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from resmlp_mt.data.places import Places
from resmlp_mt.data.text import decode_lines, read_lines

_WAIT = 0.05  # seconds in which lines that come one after the other are taken together


class Lines:
    """The lines of files; knows whether the next is there already.

    Args:
        paths: Text files, also packed ones; pipes; "-" is standard input.
        places: Learns where the lines stand.

    Raises:
        UserError: While reading, if a file is missing, broken or not UTF-8.
    """

    def __init__(self, paths: list[Path], places: Places):
        self.paths, self.places = paths, places
        self._arrivals: _Arrivals | None = None  # of what is read now; None where nobody waits

    def texts(self) -> Iterator[Iterator[str]]:
        """Yield the lines of each file, which are read before those of the next."""
        for path in self.paths:
            name = "standard input" if str(path) == "-" else str(path)
            yield self.places.follow(self._read(path, name), name)

    def _read(self, path: Path, name: str) -> Iterator[str]:
        if str(path) == "-":
            yield from self._follow(0, name)
        elif path.is_fifo() or path.is_char_device():
            with open(path, "rb", buffering=0) as stream:
                yield from self._follow(stream.fileno(), name)
        else:
            yield from read_lines(path)

    def _follow(self, descriptor: int, name: str) -> Iterator[str]:
        self._arrivals = _Arrivals(descriptor)
        yield from decode_lines(self._arrivals, name)
        self._arrivals = None

    def ready(self, seconds: float) -> bool:
        """Whether the next line, or the end, comes within so many seconds."""
        return self._arrivals is None or self._arrivals.ready(seconds)


class _Arrivals:
    """The lines of an open file as bytes, read by its descriptor alone."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []  # of a line whose end has not come
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        while True:
            while not self._lines and not self._ended:
                self._read()
            if not self._lines:
                return
            yield self._lines.popleft()

    def ready(self, seconds: float) -> bool:
        until = monotonic() + seconds
        while not self._lines and not self._ended:
            if not select.select([self.descriptor], [], [], max(0.0, until - monotonic()))[0]:
                return False
            self._read()
        return True

    def _read(self) -> None:
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:  # whoever opened it may have asked for this in place of waiting
            select.select([self.descriptor], [], [])
            return
        self._ended = not data
        if self._ended or b"\n" in data:
            *whole, rest = (b"".join(self._begun) + data).split(b"\n")
            self._lines.extend(line + b"\n" for line in whole)
            if self._ended and rest:
                self._lines.append(rest)
            self._begun = [rest]
        else:
            self._begun.append(data)


def take_arrived(
    lines: Iterator[str], most: int, ready: Callable[[float], bool]
) -> Iterator[list[str]]:
    """Yield lines in groups, each of those that come together.

    Args:
        lines: What to group.
        most: Lines in a group.
        ready: Whether the next one comes within so many seconds.
    """
    for line in lines:
        group, until = [line], monotonic() + _WAIT
        while len(group) < most and ready(max(0.0, until - monotonic())):
            try:
                group.append(next(lines))
            except StopIteration:
                break
        yield group
