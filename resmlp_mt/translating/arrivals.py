"""Lines as they come: from files, pipes and terminals."""

import os
import select
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import monotonic

from resmlp_mt.data.reading import decode_lines, read_lines
from resmlp_mt.translating.places import Places

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
        # Of what is read now; None where nothing is waited for, then or later.
        self._arrivals: _Arrivals | _Stored | None = None

    def texts(self) -> Iterator[Iterator[str]]:
        """Yield the lines of each file, which are read before those of the next."""
        last = max((i for i, path in enumerate(self.paths) if comes(path)), default=0)
        for i, path in enumerate(self.paths):
            name = "standard input" if str(path) == "-" else str(path)
            yield self.places.follow(self._read(path, name, before_others=i < last), name)

    def _read(self, path: Path, name: str, before_others: bool) -> Iterator[str]:
        if str(path) == "-":
            yield from self._follow(0, name)
        elif comes(path):
            with open(path, "rb", buffering=0) as stream:
                yield from self._follow(stream.fileno(), name)
        else:
            lines = read_lines(path)
            self._arrivals = _Stored(lines) if before_others else None
            yield from self._arrivals or lines

    def _follow(self, descriptor: int, name: str) -> Iterator[str]:
        self._arrivals = _Arrivals(descriptor)
        yield from decode_lines(self._arrivals, name)

    def ready(self, seconds: float) -> bool:
        """Whether the next line comes within so many seconds; no file's end is waited behind."""
        return self._arrivals is None or self._arrivals.ready(seconds)


def comes(path: Path) -> bool:
    """Whether its lines may have to be waited for."""
    return str(path) == "-" or path.is_fifo() or path.is_char_device()


class _Stored:
    """The lines of a file that is there, before another whose lines are waited for."""

    def __init__(self, lines: Iterator[str]):
        self._lines = lines
        self._next: deque[str] = deque()

    def __iter__(self) -> Iterator[str]:
        while self.ready():
            yield self._next.popleft()

    def ready(self, seconds: float = 0.0) -> bool:
        if not self._next:
            self._next.extend(islice(self._lines, 1))
        return bool(self._next)


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
        return bool(self._lines)

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
