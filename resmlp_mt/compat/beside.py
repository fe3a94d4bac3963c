"""What a training writes beside its checkpoints, and can do without: logs.

It is of the patch in saving.py.
"""

import logging
import os
import sys
import threading

from fairseq.logging import progress_bar

from resmlp_mt.compat.saving import PATCH

logger = logging.getLogger(__name__)
_left: set[str] = set()  # files and folders to which nothing more is written


@PATCH.replaces(
    "fairseq.logging.progress_bar:TensorboardProgressBarWrapper._log_to_tensorboard",
    "(self, stats, tag, step)",
)
def log_to_tensorboard(log, self, *args, **kwargs):
    """Go on without --tensorboard-logdir where it cannot be written, as on a full disk."""
    if self.tensorboard_logdir in _left:
        return
    try:
        log(self, *args, **kwargs)
    except (PermissionError, NotADirectoryError, FileExistsError):  # it is a wrong one
        raise
    except OSError as error:
        progress_bar._tensorboard_writers.clear()  # else they are closed at the end, and fail again
        _leave(self.tensorboard_logdir, error)


def outlive_logs() -> None:
    """Let a program go on without a log that it cannot write."""
    logging.FileHandler.handleError = _handle
    threading.excepthook = _tell


def _handle(handler: logging.FileHandler, record: logging.LogRecord) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, OSError):
        logging.Handler.handleError(handler, record)
        return
    # What the stream still holds goes there, too.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handler.stream.fileno())
    os.close(nowhere)
    _leave(handler.baseFilename, error)


def _leave(path: str, error: OSError) -> None:
    if path not in _left:
        _left.add(path)
        logger.warning("%s: %s: going on without this log", path, error.strerror)


def _tell(args, tell=threading.excepthook) -> None:
    # TensorBoard's thread has its error raised where something is logged, too.
    if not type(args.thread).__module__.startswith("tensorboard."):
        tell(args)
