"""Lines of files, pipes and terminals, as they come, and the places where they stand."""

import os
import queue
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Thread
from time import monotonic

from resmlp_mt.data.reading import decode_lines, read_lines
from resmlp_mt.errors import UserError

STANDARD = Path("-")
_WAIT = 0.05  # seconds in which lines that come one after the other are taken together
_AHEAD = 1000  # lines that are read before they are asked for


class Lines:
    """The lines of texts, each of a name or "", one after the other; knows where each stands."""

    def __init__(self, texts: Iterable[tuple[Iterable[str], str]]):
        self._texts = texts
        self._begun: list[tuple[int, str]] = []  # how many lines come before each, and its name

    def __iter__(self) -> Iterator[str]:
        count = 0
        for lines, name in self._texts:
            self._begun.append((count, name))
            for line in lines:
                count += 1
                yield line

    def find(self, number: int) -> str:
        """Where the line of this number is, such as "b.txt, line 3"."""
        before, name = self._begun[bisect_left(self._begun, (number,)) - 1]
        return ", ".join(filter(None, [name, f"line {number - before}"]))


def open_files(paths: list[Path]) -> Lines:
    """The lines of text files, also packed ones, and of pipes; "-" is standard input.

    Raises:
        UserError: While reading, if a file is missing, broken or not UTF-8.
    """
    return Lines((_read(path), _name(path)) for path in paths)


def comes(path: Path) -> bool:
    """Whether its lines may have to be waited for."""
    return path == STANDARD or path.is_fifo() or path.is_char_device()


def _name(path: Path) -> str:
    return "standard input" if path == STANDARD else str(path)


def _read(path: Path) -> Iterator[str]:
    if not comes(path):
        yield from read_lines(path)
        return
    # Not sys.stdin: a thread that waits for it would keep Python from ending.
    with open(0 if path == STANDARD else path, "rb", closefd=path != STANDARD) as stream:
        os.set_blocking(stream.fileno(), True)  # whoever opened it may have asked for the opposite
        yield from decode_lines(stream, _name(path))


def take_shard(paths: list[Path], shard: str) -> tuple[Lines, int, int]:
    """Find one shard of the lines of files: the I-th of N parts, each of lines in a row.

    All shards one after the other are the lines of the files. Their sizes differ by one at most.

    Args:
        paths: Text files, also packed ones. They are read twice: once to count the lines.
        shard: "I/N", I from 1 to N.

    Returns:
        All lines, how many come before the shard, and how many before its end.

    Raises:
        UserError: If `shard` is not I/N, or a file cannot be read twice.
    """
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise UserError(f"--shard {shard}: give I/N, with I from 1 to N")
    for path in paths:
        if comes(path):
            raise UserError(f"--shard reads its --input twice, which {path} does not allow")
    total = sum(1 for path in paths for _ in read_lines(path))
    return open_files(paths), total * (number - 1) // count, total * number // count


class Arrivals:
    """Lines that a thread reads, so that whoever takes them knows whether the next is there.

    An error of the thread is raised where the line would be.
    """

    def __init__(self, lines: Iterable[str]):
        self._queue: queue.Queue = queue.Queue(_AHEAD)
        self._next: list[str | Exception | None] = []  # one that was looked at; None is the end
        Thread(target=self._fill, args=(lines,), daemon=True).start()

    def _fill(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._queue.put(line)
            self._queue.put(None)
        except Exception as error:
            self._queue.put(error)

    def ready(self, seconds: float | None) -> bool:
        """Whether a line or an error comes within so many seconds; None waits for the end too."""
        if not self._next:
            with suppress(queue.Empty):
                self._next.append(self._queue.get(timeout=seconds))
        return self._next[:1] not in ([], [None])

    def __iter__(self) -> Iterator[str]:
        while self.ready(None):
            line = self._next.pop()
            if isinstance(line, Exception):
                raise line
            yield line


def group(lines: Iterable[str], most: int, arrivals: Arrivals | None) -> Iterator[list[str]]:
    """Yield lines in groups of `most` at most; of arrivals, those that come together."""
    lines = iter(lines)
    while found := list(islice(lines, most if arrivals is None else 1)):
        until = monotonic() + _WAIT
        while arrivals and len(found) < most and arrivals.ready(max(0.0, until - monotonic())):
            found += islice(lines, 1)
        yield found
