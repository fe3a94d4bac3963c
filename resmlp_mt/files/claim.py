"""Folders and files that one process alone writes to."""

import os
from pathlib import Path

from filelock import lock_descriptor

# What this process has claimed, as device and number of the file: the open descriptor.
_claimed: dict[tuple[int, int], int] = {}


def lock(descriptor: int) -> bool:
    """Lock an open file or folder until it is closed.

    Returns:
        False where another process has it. A file system without locks has no such answer.
    """
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError:  # it has no locks, or none for folders
        return True


def claim_folder(folder: Path) -> bool:
    """Take a folder for this process until it ends, however it ends; nothing is written there.

    Returns:
        As `lock`.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    found = os.fstat(descriptor)
    if (key := (found.st_dev, found.st_ino)) not in _claimed and lock(descriptor):
        _claimed[key] = descriptor
    else:
        os.close(descriptor)
    return key in _claimed


def release_folder(folder: Path) -> None:
    """Give back what was claimed; what was not stays as it is."""
    found = os.stat(folder)
    if (descriptor := _claimed.pop((found.st_dev, found.st_ino), None)) is not None:
        os.close(descriptor)


def _forget() -> None:
    for descriptor in _claimed.values():
        os.close(descriptor)
    _claimed.clear()


# A worker that outlives a killed training must not keep its folder.
os.register_at_fork(after_in_child=_forget)
