"""Checkpoints are written whole or not at all."""

import os
import re
from pathlib import Path
from typing import BinaryIO

import numpy
import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.file_io import PathManager

from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import FULL

PATCH = Patch(
    "checkpoints whole",
    "copies a checkpoint to its other names in place, where a kill leaves half of one, and answers "
    "a full disk by writing twice more behind what was written. With --keep-best-checkpoints it "
    "keeps nothing that is worse than those that it has, even where it has too few. It ends where "
    "the disk of --tensorboard-logdir is full",
    "whoever's training is killed, or whose disk is full, while a checkpoint or a log is written, "
    "or who averages the best checkpoints",
    "a checkpoint appears whole or not at all, and a full disk is named with the file. As many of "
    "the best are kept as were asked for. A log that cannot be written is done without",
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
        _place(dst_path, lambda stream: _pour(source, stream))
    return True


@PATCH.replaces("fairseq.checkpoint_utils:save_checkpoint", "(cfg, trainer, epoch_itr, val_loss)")
def save_and_keep(save_checkpoint, cfg, trainer, epoch_itr, val_loss):
    """Keep a checkpoint for one of the best as long as there are too few of them.

    Its name is that which fairseq gives it.
    """
    saved = save_checkpoint(cfg, trainer, epoch_itr, val_loss)
    if val_loss is None or cfg.no_save or cfg.keep_best_checkpoints <= 0:
        return saved
    most, metric = cfg.keep_best_checkpoints, cfg.best_checkpoint_metric
    end = f"{trainer.checkpoint_suffix}.pt"
    best = rf"checkpoint\.best_{metric}_(\d+\.?\d*){re.escape(end)}"
    kept = checkpoint_utils.checkpoint_paths(cfg.save_dir, best)
    with data_utils.numpy_seed(epoch_itr.epoch, trainer.get_num_updates(), val_loss):
        tie = numpy.random.randint(0, most)
    path = os.path.join(cfg.save_dir, f"checkpoint.best_{metric}_{val_loss:.3f}{tie}{end}")
    if len(kept) < most and path not in kept and trainer.should_save_checkpoint_on_current_rank:
        if saved:
            PathManager.copy(saved, path, overwrite=True)
        else:
            state = {"train_iterator": epoch_itr.state_dict(), "val_loss": val_loss}
            trainer.save_checkpoint(path, state)
    return saved


def _pour(source: BinaryIO, stream: BinaryIO) -> None:
    while True:
        try:
            data = source.read(2**20)
        except OSError as error:
            error.filename = source.name  # of which the system says no name
            raise
        if not data:
            return
        stream.write(data)


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
        place, advice = (None, "Make room") if full else (error.filename, "Put that right")
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
