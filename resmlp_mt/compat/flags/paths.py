"""Folders and names of models, where fairseq wants checkpoints."""

import os
from argparse import Namespace

from fairseq.utils import split_paths

from resmlp_mt.compat.checkpoints import find_and_read, load_checkpoint
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.files.kinds import is_of_images


def check_data(flags: Namespace) -> None:
    """Refuse data that are not there before a training makes its folder."""
    data = getattr(flags, "data", None)  # a task may take none
    for path in [] if data is None else split_paths(data):
        if not os.path.exists(path):
            raise UserError(f"{path}: no such file or folder, where the data should be")


def mend_paths(flags: Namespace) -> None:
    """Put checkpoints where folders and names of models stand.

    Raises:
        UserError: Naming what is not there.
    """
    task = getattr(flags, "task", None)
    kind = task and ("images" if is_of_images(task) else "text")
    if (start := getattr(flags, "finetune_from_model", None)) is not None:
        if not start:  # it would stand for the working folder
            raise UserError("--finetune-from-model is empty; name a checkpoint, folder or model")
        flags.finetune_from_model = str(find_checkpoint(start, kind))
        if kind == "images" and os.path.isdir(start):
            flags.finetune_from_model = str(find_and_read(start)[0])
    parts = (
        getattr(flags, "checkpoint_suffix", "") or getattr(flags, "checkpoint_shard_count", 1) > 1
    )
    if (path := getattr(flags, "path", None)) and not parts:
        flags.path = os.pathsep.join(str(find_checkpoint(part, kind)) for part in split_paths(path))


def find_task(path: str | None) -> str:
    """The task of the first checkpoint that --path names."""
    if path is None:
        raise UserError("--path CHECKPOINT is missing: what shall be validated?")
    return load_checkpoint(find_checkpoint(split_paths(path)[0]))["cfg"].task._name
