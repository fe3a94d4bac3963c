"""Which sets are read, whole or in parts."""

import logging
import os
from pathlib import Path

from fairseq.data.data_utils import get_buckets
from fairseq.file_io import PathManager
from fairseq.utils import split_paths

from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.compat.flags.models import is_our_translator
from resmlp_mt.errors import UserError

logger = logging.getLogger(__name__)


def check_data(flags: Flags) -> None:
    """Refuse data that are not there before a training makes its folder."""
    for path in [] if flags.data is None else split_paths(flags.data):  # a task may take none
        if not (PathManager.path_requires_pathmanager(path) or os.path.exists(path)):
            raise UserError(f"{path}: no such file or folder, where the data should be")


def check_sets(flags: Flags) -> None:
    """Refuse names of sets of which fairseq would leave some out, or parts of them."""
    if flags.combine_valid_subsets and "," in flags.valid_subset:
        raise UserError(
            f"--combine-valid-subsets joins valid, valid1 ...: give --valid-subset valid with it, "
            f"not {flags.valid_subset}"
        )
    if "," in (flags.train_subset or ""):
        raise UserError(
            f"--train-subset {flags.train_subset}: name one set; put more beside it as train1, "
            "train2 ..., which are trained on too"
        )
    validates = _trains(flags) and not flags.disable_validation
    if validates and flags.train_subset in flags.valid_subset.split(","):
        # Each would take epochs of the other's iterator.
        raise UserError(
            f"--train-subset and --valid-subset have {flags.train_subset}, and fairseq leaves "
            "epochs out: give --disable-validation, or a copy of the set under another name"
        )


def check_batches(flags: Flags) -> None:
    """Refuse shards that would each do all, buckets that fail, and alignments that are missing."""
    shards = (flags.num_shards, flags.shard_id)
    if flags.task == "translation" and shards not in ((None, None), (1, 0)):
        raise UserError(
            "--num-shards and --shard-id do nothing in fairseq, and all is done in each shard: use "
            "'resmlp-mt translate --shard I/N', or torchrun for a training"
        )
    if flags.num_batch_buckets:
        try:
            get_buckets([1, 2], flags.num_batch_buckets)
        except TypeError:
            raise UserError(
                "--num-batch-buckets: fairseq's buckets need an older NumPy; leave it out"
            ) from None
    if flags.load_alignments and _trains(flags):
        alignments = f"{flags.train_subset}.align.*"
        if not any(any(Path(d).glob(alignments)) for d in split_paths(flags.data)):
            raise UserError(
                f"--load-alignments: {flags.data} has no {alignments}: prepare them with "
                "fairseq-preprocess --align-suffix, or leave it out"
            )


def mend_sets(flags: Flags) -> None:
    """Let sets be named that fairseq does not find, or looks for in vain."""
    if not flags.data:
        return
    folders = split_paths(flags.data)
    if not all(map(os.path.isdir, folders)):
        # fairseq looks for forgotten valid1, valid2 ... in it, as it would in a folder.
        flags.ignore_unused_valid_subsets = True
    elif flags.valid_subset:
        # fairseq does not find a name among valid1.en-de.en.bin and the like.
        there = {path.name.split(".")[0] for f in folders for path in Path(f).glob("valid*")}
        if there <= set(flags.valid_subset.split(",")):
            flags.ignore_unused_valid_subsets = True


def warn_of_rest(flags: Flags) -> None:
    """Say that fairseq's tasks of translation leave sentences out, where ours does not."""
    task, multiple = flags.task, flags.required_batch_size_multiple or 1
    ours = not _trains(flags) or is_our_translator(flags.arch)
    if ours and multiple > 1 and "translation" in str(task) and task != "translation":
        logger.warning(
            "--task %s is fairseq's, which leaves out the last sentences of a set whose number is "
            "no multiple of %d: give --required-batch-size-multiple 1",
            task, multiple,
        )  # fmt: skip


def _trains(flags: Flags) -> bool:
    return flags.max_update is not None
