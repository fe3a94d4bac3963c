"""Data and its batches."""

import math
import os

from fairseq import utils
from fairseq.data import data_utils
from fairseq.data.iterators import EpochBatchIterator, GroupedIterator
from fairseq.tasks import FairseqTask

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def keep_last_batch() -> None:
    """Make fairseq translate, validate and train on every sentence.

    It drops the last batch where the number of its sentences is not a multiple of
    --required-batch-size-multiple (8 unless told), so that up to seven and more lines of a test
    set would have no translation and no part in the score.
    """

    @patch(data_utils, "batch_by_size")
    def batch_all(batch, indices, *args, **kwargs):
        if len(indices) == 0:
            raise UserError(
                "there is nothing to batch: the data is empty, or all of it is longer than "
                "--max-source-positions, --max-target-positions or --max-tokens"
            )
        batches = batch(indices, *args, **kwargs)
        # Batches are slices of the indices, in their order.
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches


def keep_batches_on_resuming() -> None:
    """Let a training that goes on in a later epoch see the batches of one that never stopped.

    fairseq makes the batches once, for all epochs. But how it orders sentences of one length
    depends on the epoch in which it does so: after a resume, the rest of the epoch would have
    sentences for the second time, and leave others out.
    """

    @patch(FairseqTask, "get_batch_iterator")
    def get_iterator(get_batch_iterator, self, dataset, *args, epoch=1, **kwargs):
        made_anew = (
            kwargs.get("disable_iterator_cache")  # as for data in several folders
            or kwargs.get("update_epoch_batch_itr")
            or not self.can_reuse_epoch_itr(dataset)
        )
        if made_anew or dataset in self.dataset_to_epoch_iter:
            return get_batch_iterator(self, dataset, *args, epoch=epoch, **kwargs)
        iterator = get_batch_iterator(self, dataset, *args, epoch=1, **kwargs)
        iterator.epoch = max(epoch, 1)
        dataset.set_epoch(epoch)
        return iterator


def go_on_with_other_workers() -> None:
    """Let a training that goes on in the middle of an epoch have more or fewer workers than before.

    fairseq notes how many batches one worker had. The batches are dealt to the workers in turn, so
    that all together had as many times more as they were.
    """

    @patch(EpochBatchIterator, "state_dict")
    def get_state(get_state_dict, self):
        return get_state_dict(self) | {"num_shards": self.num_shards}

    @patch(EpochBatchIterator, "load_state_dict")
    def load(load_state_dict, self, state):
        done = state.get("iterations_in_epoch", 0) * state.get("num_shards", self.num_shards)
        return load_state_dict(self, state | {"iterations_in_epoch": done // self.num_shards})

    @patch(GroupedIterator, "__init__")
    def group(build, self, iterable, chunk_size, skip_remainder_batch=False):
        build(self, iterable, chunk_size, skip_remainder_batch)
        if not skip_remainder_batch:
            left = len(iterable) - getattr(iterable, "n", 0)
            # fairseq leaves out the last batch where an odd number of them is left for groups of 2
            # after an odd number, and takes the epoch for unfinished.
            self.total = self.n + math.ceil(left / chunk_size)


def take_archives_for_data() -> None:
    """Let the data be a .tar of images: fairseq looks for forgotten valid1, valid2 ... in it."""

    @patch(data_utils, "_find_extra_valid_paths")
    def find_in_folders(find, path):
        return find(path) if all(os.path.isdir(part) for part in utils.split_paths(path)) else set()
