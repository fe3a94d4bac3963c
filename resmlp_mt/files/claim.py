"""A folder that one process alone writes to."""

import os
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    fcntl = None

# What this process has claimed, as device and number of the file: the open descriptor.
_claimed: dict[tuple[int, int], int] = {}


def claim_folder(folder: Path) -> bool:
    """Take a folder for this process until it ends, however it ends; nothing is written there.

    Returns:
        False where another process has it. A file system or Windows without locks has no such
        answer.
    """
    if fcntl is None:
        return True
    descriptor = os.open(folder, os.O_RDONLY)
    found = os.fstat(descriptor)
    try:
        if (key := (found.st_dev, found.st_ino)) not in _claimed:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _claimed[key], descriptor = descriptor, None
    except BlockingIOError:
        return False
    except OSError:  # a file system that has no locks, or none for folders
        return True
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _forget() -> None:
    for descriptor in _claimed.values():
        os.close(descriptor)
    _claimed.clear()


# A worker that outlives a killed training must not keep its folder.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
