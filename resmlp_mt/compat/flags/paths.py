"""Folders and names of models, where fairseq wants checkpoints."""

import os

from fairseq.file_io import PathManager
from fairseq.utils import split_paths

from resmlp_mt.compat.checkpoints import find_and_read, load_checkpoint
from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.compat.flags.models import modality_of
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_checkpoint


def mend_paths(flags: Flags) -> None:
    """Put checkpoints where folders and names of models stand.

    Raises:
        UserError: Naming what is not there.
    """
    modality = modality_of(flags.task)
    if (start := flags.finetune_from_model) is not None:
        if not start:  # it would stand for the working folder
            raise UserError("--finetune-from-model is empty; name a checkpoint, folder or model")
        flags.finetune_from_model = _find(start, modality)
        if modality == "images" and os.path.isdir(start):
            flags.finetune_from_model = str(find_and_read(start)[0])
    in_parts = flags.checkpoint_suffix or (flags.checkpoint_shard_count or 1) > 1
    if flags.path and not in_parts:
        flags.path = os.pathsep.join(_find(part, modality) for part in split_paths(flags.path))


def find_task(path: str | None) -> str:
    """The task of the first checkpoint that --path names."""
    if path is None:
        raise UserError("--path CHECKPOINT is missing: what shall be validated?")
    checkpoint = _find(split_paths(path)[0])
    return load_checkpoint(checkpoint)["cfg"].task._name


def _find(path: str, modality: str | None = None) -> str:
    """The checkpoint that a path or a name stands for.

    Raises:
        UserError: If there is none. It offers those of the modality.
    """
    if PathManager.path_requires_pathmanager(path):
        return path
    return str(find_checkpoint(path, modality))
