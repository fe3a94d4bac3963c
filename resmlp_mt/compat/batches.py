"""Data and its batches."""

import os

from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks import FairseqTask

from resmlp_mt.compat.patching import patch


def keep_last_batch() -> None:
    """Make fairseq translate, validate and train on every sentence.

    It drops the last batch where the number of its sentences is not a multiple of
    --required-batch-size-multiple (8 unless told), so that up to seven and more lines of a test
    set would have no translation and no part in the score.
    """

    @patch(data_utils, "batch_by_size")
    def batch_all(batch, indices, *args, **kwargs):
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


def take_archives_for_data() -> None:
    """Let the data be a .tar of images: fairseq looks for forgotten valid1, valid2 ... in it."""

    @patch(data_utils, "_find_extra_valid_paths")
    def find_in_folders(find, path):
        return find(path) if all(os.path.isdir(part) for part in utils.split_paths(path)) else set()
