"""Batches: all of the data is in them, and a training that goes on has those of one that never
stopped.
"""

import logging
from functools import partial

from fairseq.data import data_utils
from fairseq.data.iterators import BufferedIterator, EpochBatchIterator
from fairseq.logging import progress_bar
from fairseq.tasks import FairseqTask

from resmlp_mt.errors import UserError
from resmlp_mt.tasks.pairs import PairsInBatches
from resmlp_mt.tasks.read_ahead import end_with_process


class WorkersMayChange(EpochBatchIterator):
    """fairseq's iterator, which goes on in the middle of an epoch with more or fewer workers.

    fairseq notes how many batches one worker had. The batches are dealt to the workers in turn, so
    that all together had as many times more as they were.

    With --curriculum it begins to shuffle when told so. fairseq's goes on with the order of the
    first epoch that it read. What reads batches ahead ends before the process.
    """

    def state_dict(self) -> dict:
        """The place in the data, and how many workers there were."""
        return super().state_dict() | {"num_shards": self.num_shards}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on where all workers together were."""
        before = state_dict.get("num_shards", self.num_shards)
        done = state_dict.get("iterations_in_epoch", 0) * before
        super().load_state_dict(state_dict | {"iterations_in_epoch": done // self.num_shards})

    def _get_iterator_for_epoch(self, epoch, shuffle, fix_batches_to_gpus=False, offset=0):
        if self.dataloader is not None:  # it is used again, and its sampler holds the first value
            self.epoch_batch_sampler.shuffle = shuffle
        batches = super()._get_iterator_for_epoch(epoch, shuffle, fix_batches_to_gpus, offset)
        if isinstance(ahead := getattr(batches, "_itr", None), BufferedIterator):
            end_with_process(ahead)
        return batches


class AllInBatches(FairseqTask):
    """The batches and the log of an epoch, where our tasks differ from fairseq's."""

    def get_batch_iterator(
        self,
        dataset,
        max_tokens=None,
        max_sentences=None,
        max_positions=None,
        ignore_invalid_inputs=False,
        required_batch_size_multiple=1,
        seed=1,
        num_shards=1,
        shard_id=0,
        num_workers=0,
        epoch=1,
        data_buffer_size=0,
        disable_iterator_cache=False,
        skip_remainder_batch=False,
        grouped_shuffling=False,
        update_epoch_batch_itr=False,
    ) -> EpochBatchIterator:
        """Batch a data set; arguments as fairseq's.

        fairseq makes the batches once, for all epochs. But how it orders sentences of one length
        depends on the epoch in which it does so: after a resume, the rest of the epoch would have
        sentences for the second time, and leave others out. Here it is always the first epoch.

        Raises:
            UserError: If nothing is left to batch.
        """
        one_for_all = (
            not disable_iterator_cache  # as for data in several folders
            and not update_epoch_batch_itr
            and self.can_reuse_epoch_itr(dataset)
        )
        if one_for_all and dataset in self.dataset_to_epoch_iter:
            return self.dataset_to_epoch_iter[dataset]
        limits = dict(
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            required_batch_size_multiple=required_batch_size_multiple,
        )
        make = partial(
            self._make_batches,
            seed=seed,
            max_positions=max_positions,
            ignore_invalid_inputs=ignore_invalid_inputs,
            limits=limits,
        )
        first = 1 if one_for_all else epoch
        dataset.set_epoch(first)
        anew = getattr(self.cfg, "rebuild_batches", False)
        examples = PairsInBatches(dataset) if PairsInBatches.can_cut(dataset) else dataset
        iterator = WorkersMayChange(
            dataset=examples,
            collate_fn=examples.collater,
            batch_sampler=make if anew else make(dataset, first),
            seed=seed,
            num_shards=num_shards,
            shard_id=shard_id,
            num_workers=num_workers,
            epoch=epoch,
            buffer_size=data_buffer_size,
            skip_remainder_batch=skip_remainder_batch,
            grouped_shuffling=grouped_shuffling,
            reuse_dataloader=getattr(self.cfg, "reuse_dataloader", True),
            persistent_workers=one_for_all and getattr(self.cfg, "persistent_workers", True),
        )
        dataset.set_epoch(epoch)
        if one_for_all:
            self.dataset_to_epoch_iter[dataset] = iterator
        return iterator

    def _make_batches(
        self, dataset, epoch, *, seed, max_positions, ignore_invalid_inputs, limits
    ) -> list:
        with data_utils.numpy_seed(seed + epoch):
            indices = dataset.ordered_indices()
        if max_positions is not None:
            indices = self.filter_indices_by_size(
                indices, dataset, max_positions, ignore_invalid_inputs
            )
        return batch_all(dataset, indices, **limits)

    def begin_epoch(self, epoch, model) -> None:
        """Write a line once to --log-file: fairseq adds a handler for it in every epoch."""
        super().begin_epoch(epoch, model)
        files = set()
        for handler in list(progress_bar.logger.handlers):
            if isinstance(handler, logging.FileHandler):
                if handler.baseFilename in files:
                    progress_bar.logger.removeHandler(handler)
                    handler.close()
                files.add(handler.baseFilename)


def batch_all(dataset, indices, **limits) -> list:
    """Batches of all indices, in their order.

    fairseq drops the last batch where its size is not a multiple of --required-batch-size-multiple
    (8 unless told), so that up to seven and more lines of a test set would have no translation and
    no part in the score.

    Args:
        dataset: One of fairseq's.
        indices: (N,).
        **limits: Of `dataset.batch_by_size`.

    Raises:
        UserError: If there are none, or one alone is longer than a batch may be.
    """
    if len(indices) == 0:
        raise UserError(
            "there is nothing to batch: the data is empty, or all of it is longer than "
            "--max-source-positions, --max-target-positions or --max-tokens"
        )
    try:
        batches = dataset.batch_by_size(indices, **limits)
    except AssertionError:  # fairseq leaves such out of training alone
        longest, most = max(map(dataset.num_tokens, indices)), limits["max_tokens"]
        raise UserError(
            f"an example has {longest} tokens, and a batch takes {most}; raise --max-tokens, "
            "or --max-tokens-valid if it is one to validate with"
        ) from None
    rest = indices[sum(map(len, batches)) :]  # batches are slices of the indices
    return [*batches, rest] if len(rest) else batches
