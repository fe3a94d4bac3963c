"""A line for each request, in the Common Log Format with the seconds behind it."""

import logging
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from logging.handlers import WatchedFileHandler

from resmlp_mt.errors import UserError
from resmlp_mt.serving.measure import Answered


class _File(WatchedFileHandler):
    """A file that is opened again where it was moved.

    A full disk or a missing folder is said once, and once more when the file was written between.
    Requests are answered as ever.
    """

    fails = False
    error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        self.error = None
        try:
            super().emit(record)
        except OSError as error:  # it cannot be opened again
            self.error = error
        if self.error and not self.fails:
            said = getattr(self.error, "strerror", None) or self.error
            what = f"--access-log {self.baseFilename}: {said}; requests go unlogged"
            print(what, file=sys.stderr, flush=True)
        self.fails = self.error is not None

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Remember why a line could not be written, where logging would print a traceback."""
        self.error = sys.exc_info()[1]


def open_access_log(where: str) -> Callable[[Answered], None]:
    """What writes the line of a request. Neither texts nor keys are in it.

    Args:
        where: A file, which several processes may write to, and which is opened again where it was
            moved, as log rotation does; "-" for stderr.

    Raises:
        UserError: If the file cannot be opened.
    """
    try:
        handler = logging.StreamHandler(sys.stderr) if where == "-" else _File(where)
    except OSError as error:
        raise UserError(f"--access-log {where}: {error.strerror}") from None
    logger = logging.Logger("access", logging.INFO)
    logger.addHandler(handler)

    def write(answered: Answered) -> None:
        now = time.strftime("%d/%b/%Y:%H:%M:%S %z")
        # What a stranger sends as a path must not look like lines of its own.
        path = answered.path.encode("unicode_escape").decode().replace('"', r"\"")
        logger.info(
            f"{_name_client(answered.client)} - - [{now}] "
            f'"{answered.method} {path} HTTP/{answered.version}" '
            f"{answered.status} {answered.size} {answered.seconds:.3f}"
        )

    return write


def _name_client(said: str) -> str:
    """The address of a client. A proxy may hand on whatever the client calls itself."""
    try:
        return str(ip_address(said))
    except ValueError:
        return "-"
