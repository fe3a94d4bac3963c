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
    return _lock(folder) is not False


def claim_abandoned(folder: Path) -> bool:
    """Take a folder that certainly no other process has, as `claim_folder` does."""
    return _lock(folder) is True


def release_folder(folder: Path) -> None:
    """Give back what was claimed; what was not stays as it is."""
    found = os.stat(folder)
    if (descriptor := _claimed.pop((found.st_dev, found.st_ino), None)) is not None:
        os.close(descriptor)


def _lock(folder: Path) -> bool | None:
    """Whether this process has it now; None where a file system, or Windows, cannot tell."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    found = os.fstat(descriptor)
    try:
        if (key := (found.st_dev, found.st_ino)) not in _claimed:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _claimed[key], descriptor = descriptor, None
    except BlockingIOError:
        return False
    except OSError:  # a file system that has no locks, or none for folders
        return None
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
