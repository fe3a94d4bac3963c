"""Data and its batches."""

import os

from fairseq import utils
from fairseq.data import data_utils

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


def take_archives_for_data() -> None:
    """Let the data be a .tar of images: fairseq looks for forgotten valid1, valid2 ... in it."""

    @patch(data_utils, "_find_extra_valid_paths")
    def find_in_folders(find, path):
        return find(path) if all(os.path.isdir(part) for part in utils.split_paths(path)) else set()
