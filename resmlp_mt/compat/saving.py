"""Checkpoints are written whole or not at all."""

import os
import shutil
from pathlib import Path
from typing import BinaryIO

import torch
from fairseq.file_io import PathManager

from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import FULL

PATCH = Patch(
    "checkpoints whole",
    """
    fairseq copies a checkpoint to its other names in place, where a kill leaves half of one. It
    answers a full disk by writing twice more behind what was written.
    """,
    "whoever's training is killed, or whose disk is full, while a checkpoint is written",
    """
    A checkpoint appears whole or not at all, and a full disk is named with the file.
    """,
)


@PATCH.replaces("fairseq.checkpoint_utils:torch_persistent_save", "5f397c23bc88")
def save(persistent_save, obj, filename, async_write=False):
    """Write to one side, then rename. Remote checkpoints are left to fairseq.

    So are those that another program has written beside its training.
    """
    if async_write or PathManager.path_requires_pathmanager(filename):
        return persistent_save(obj, filename, async_write)
    return _place(filename, lambda stream: _save(obj, stream))


@PATCH.replaces("fairseq.file_io:PathManager.copy", "e4ce3f5c1ff0")
def copy(copy_file, src_path, dst_path, overwrite=False):
    """Copy to one side, then rename."""
    if any(map(PathManager.path_requires_pathmanager, (src_path, dst_path))):
        return copy_file(src_path, dst_path, overwrite)
    with open(src_path, "rb") as source:
        _place(dst_path, lambda stream: shutil.copyfileobj(source, stream))
    return True


def _place(filename: str, write) -> None:
    partial = f"{filename}.tmp"  # one name, so that killed trainings do not fill the disk
    try:
        with open(partial, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, filename)
    except OSError as error:
        full = error.errno in FULL
        place, advice = (filename, "Make room") if full else (error.filename, "Put that right")
        raise UserError(
            f"{place or filename}: {error.strerror}: the checkpoint was not written, those before "
            f"it are whole. {advice} and give the same command again; it goes on from the last one"
        ) from error
    finally:
        Path(partial).unlink(missing_ok=True)


def _save(obj: dict, stream: BinaryIO) -> None:
    disk = _Disk(stream)
    try:
        torch.save(obj, disk)
    except RuntimeError as error:
        raise disk.error or error from None


class _Disk:
    """A file that keeps the error of its disk: torch hides it behind one of its own."""

    def __init__(self, stream: BinaryIO):
        self.stream, self.error = stream, None

    def write(self, data: bytes) -> int:
        try:
            return self.stream.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self.stream.flush()
