"""Checkpoints are written whole or not at all."""

import os
import shutil
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def write_whole_checkpoints() -> None:
    """Let a checkpoint appear whole or not at all.

    fairseq copies an epoch's checkpoint to its other names in place, where a kill leaves half of
    one, and answers a full disk by writing twice more behind what was written.
    """

    def place(filename: str, write) -> None:
        partial = f"{filename}.tmp"  # one name, so that killed trainings do not fill the disk
        try:
            with open(partial, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, filename)
        except OSError as error:
            Path(partial).unlink(missing_ok=True)
            raise UserError(
                f"{filename}: {error.strerror}: it was not written, the checkpoints before it are "
                "whole. Make room and give the same command again; it goes on from the last one"
            ) from error

    @patch(checkpoint_utils, "torch_persistent_save")
    def save(_, obj, filename, async_write=False):
        place(filename, lambda stream: torch.save(obj, stream))

    @patch(PathManager, "copy")
    def copy(_, src_path, dst_path, overwrite=False):
        with open(src_path, "rb") as source:
            place(dst_path, lambda stream: shutil.copyfileobj(source, stream))
        return True
