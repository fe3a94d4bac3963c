"""Checkpoints are written whole or not at all."""

import os
import shutil
from pathlib import Path
from typing import BinaryIO

import torch

from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import FULL


@replaces("fairseq.checkpoint_utils:torch_persistent_save")
def save(_, obj, filename, async_write=False):
    """Write to one side, then rename, while the training waits."""
    return _place(filename, lambda stream: _save(obj, stream))


@replaces("fairseq.file_io:PathManager.copy")
def copy(_, src_path, dst_path, overwrite=False):
    """Copy to one side, then rename."""
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
    try:
        torch.save(obj, stream)
    except RuntimeError as error:  # torch hides the disk's behind one of its own
        raise error.__context__ if isinstance(error.__context__, OSError) else error  # noqa: B904
