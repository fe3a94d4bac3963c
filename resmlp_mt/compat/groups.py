"""Batches in groups, for --update-freq."""

import math

from resmlp_mt.compat.patching import Patch

PATCH = Patch(
    "groups of batches",
    "leaves out the last batch where an odd number of them is left for groups of 2 after an odd "
    "number, and takes the epoch for unfinished",
    "whoever goes on within an epoch with another --update-freq or number of workers",
    "the groups are counted from where it goes on",
)


@PATCH.replaces("fairseq.data.iterators:GroupedIterator.__init__", "0ab599fc52f9")
def group(build, self, iterable, chunk_size, skip_remainder_batch=False):
    """Count the groups that are left from where it goes on."""
    build(self, iterable, chunk_size, skip_remainder_batch)
    if not skip_remainder_batch:
        left = len(iterable) - getattr(iterable, "n", 0)
        self.total = self.n + math.ceil(left / chunk_size)
