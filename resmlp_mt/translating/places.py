"""Where the lines of a text stand that was read from several files."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator


class Places:
    """Finds the file and the line there of each line that was read."""

    def __init__(self):
        self._files: list[tuple[int, str]] = []  # how many lines come before each, and its name
        self._count = 0

    def follow(self, lines: Iterable[str], name: str) -> Iterator[str]:
        """Yield the lines of a file, which comes behind those that were read before."""
        self._files.append((self._count, name))
        for line in lines:
            self._count += 1
            yield line

    def find(self, number: int) -> str:
        """Where the line of this number is, such as "b.txt, line 3"; "line 3" without any files."""
        file = bisect_left(self._files, (number,)) - 1
        before, name = self._files[file] if file >= 0 else (0, "")
        return ", ".join(filter(None, [name, f"line {number - before}"]))
