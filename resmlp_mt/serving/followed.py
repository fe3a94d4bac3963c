"""Files that are read again where they change."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from resmlp_mt.errors import UserError

logger = logging.getLogger(__name__)
Content = TypeVar("Content")


class FollowedFile(Generic[Content]):
    """A file that may change while requests are answered.

    Args:
        path: The file. It is read at once.
        parse: Makes of the path what is in the file.
        flag: What names the file.
        what: What is in it, as a message says it.

    Raises:
        UserError: As by `parse`.
    """

    def __init__(self, path: Path, parse: Callable[[Path], Content], flag: str, what: str):
        self.path, self.parse, self.flag, self.what = path, parse, flag, what
        self.may_change = path.is_file()  # a pipe, as of a shell's <(...), can be read once
        self.seen = self._look()
        self.content = parse(path)

    def read(self) -> Content:
        """What is in it now: the same object until it changes.

        Where it cannot be read, it is what was there before, and the log says so once.
        """
        if self.may_change and self.seen != (seen := self._look()):
            self.seen = seen
            try:
                content = self.parse(self.path)
                if self._look() == seen:  # else somebody still writes, and the next look tells
                    self.content = content
            except UserError as error:
                self.keep(str(error))
            except OSError as error:
                self.keep(f"{self.path}: {error.strerror}")
        return self.content

    def keep(self, problem: str) -> None:
        """Say that what was there before still counts, and why."""
        logger.error("%s %s; %s stay as they were", self.flag, problem, self.what)

    def _look(self) -> tuple[int, ...]:
        """What differs where the file was written or replaced."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
