"""Batches and logs of an epoch, of any of our tasks."""

from itertools import islice
from types import SimpleNamespace

import numpy
import pytest
import torch
from fairseq.data import FairseqDataset
from fairseq.data.iterators import GroupedIterator
from fairseq.logging import progress_bar

from resmlp_mt.compat.resuming import begin_group
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.batches import AllInBatches, WorkersMayChange, batch_all


class Sentences(FairseqDataset):
    """Sentences of some lengths, shuffled where the lengths are equal."""

    def __init__(self, lengths):
        self.lengths = numpy.array(lengths)

    def __getitem__(self, i):
        return i

    def __len__(self):
        return len(self.lengths)

    def num_tokens(self, i):
        return self.lengths[i]

    def num_tokens_vec(self, indices):
        return self.lengths[indices]

    def size(self, i):
        return self.lengths[i]

    def collater(self, samples):
        return samples

    def ordered_indices(self):
        order = numpy.random.permutation(len(self))
        return order[numpy.argsort(self.lengths[order], kind="stable")]


@pytest.mark.parametrize("count", [1, 7, 8, 30, 33])
@pytest.mark.parametrize("limits", [{"max_sentences": 8}, {"max_tokens": 100}])
def test_every_sentence_is_in_a_batch(count, limits):
    lengths = numpy.random.default_rng(1).integers(1, 10, count)
    order = numpy.arange(count)
    batches = batch_all(Sentences(lengths), order, required_batch_size_multiple=8, **limits)
    assert numpy.concatenate(batches).tolist() == list(range(count))
    assert all(len(b) <= limits.get("max_sentences", count) for b in batches)
    assert all(lengths[b].max() * len(b) <= limits.get("max_tokens", 10**6) for b in batches)


def test_nothing_to_batch_is_refused():
    with pytest.raises(UserError, match="all of it is longer than --max-source-positions"):
        batch_all(Sentences([]), numpy.arange(0))


def test_an_example_that_no_batch_takes_is_refused():
    with pytest.raises(UserError, match="an example has 12 tokens, and a batch takes 8"):
        batch_all(Sentences([3, 12, 5]), numpy.arange(3), max_tokens=8)


@pytest.mark.parametrize("rebuilds", [False, True])
def test_a_task_that_begins_in_a_later_epoch_has_the_batches_of_one_that_never_stopped(rebuilds):
    def batches(epoch):
        task = AllInBatches(SimpleNamespace(rebuild_batches=rebuilds))
        iterator = task.get_batch_iterator(Sentences([5] * 30), max_sentences=4, epoch=epoch)
        assert iterator.next_epoch_idx == epoch
        return list(iterator.next_epoch_itr(shuffle=False))

    never, later = batches(1), batches(3)
    assert sorted(sum(later, [])) == list(range(30))
    assert (later == never) == (not rebuilds)  # --rebuild-batches asks for others in every epoch


def deal(count, workers, state=None):
    """The iterators of all workers, each batch of one sentence."""
    data = torch.utils.data.TensorDataset(torch.arange(count))
    iterators = [
        WorkersMayChange(data, list, [[i] for i in range(count)], 1, workers, worker)
        for worker in range(workers)
    ]
    for iterator in iterators:
        if state:
            iterator.load_state_dict(state)
    return iterators


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3), (3, 2), (4, 4)])
def test_other_workers_go_on_with_the_rest_of_an_epoch(before, after):
    count, taken = 26, 5
    first = deal(count, before)
    epochs = [iterator.next_epoch_itr() for iterator in first]
    had = [next(epoch)[0][0].item() for _ in range(taken) for epoch in epochs]
    then = deal(count, after, first[0].state_dict())
    rest = [batch[0][0].item() for it in then for batch in it.next_epoch_itr() if batch]
    assert set(had + rest) == set(range(count))
    assert len(had + rest) - count == before * taken % after  # seen again


@pytest.mark.parametrize("stopped_after", [0, 7, 20])
def test_after_a_curriculum_epochs_are_shuffled_as_in_a_training_that_goes_on(stopped_after):
    def read(iterator, epochs, most=20):
        orders = []
        for epoch in epochs:  # as fairseq_cli.train does, with --curriculum 1
            batches = islice(iterator.next_epoch_itr(shuffle=epoch > 1), most)
            orders.append([batch[0][0].item() for batch in batches])
        return orders

    def begin():
        data = torch.utils.data.TensorDataset(torch.arange(20))
        return WorkersMayChange(data, list, [[i] for i in range(20)], reuse_dataloader=True)

    first, second, third = read(begin(), (1, 2, 3))
    assert first == list(range(20)) == sorted(second) == sorted(third)
    assert len({tuple(order) for order in (first, second, third)}) == 3
    if stopped_after:
        stopped, resumed = begin(), begin()
        (begun,) = read(stopped, [1], stopped_after)
        resumed.load_state_dict(stopped.state_dict())
        if stopped_after < 20:
            begun += read(resumed, [1])[0]
        assert [begun, *read(resumed, (2, 3))] == [first, second, third]


@pytest.mark.parametrize("count", [15, 16])
@pytest.mark.parametrize("done", [0, 6, 7])
def test_batches_are_joined_in_twos_from_any_place_on(count, done):
    batches = WorkersMayChange(Sentences([5] * count), list, [[i] for i in range(count)])
    place = {"epoch": 1, "iterations_in_epoch": done, "shuffle": False}
    batches.load_state_dict(place)
    begin_group(batches, [2], place)
    groups = list(GroupedIterator(batches.next_epoch_itr(shuffle=False), 2))
    assert sum(groups, []) == [[i] for i in range(done - done % 2, count)]
    assert batches.end_of_epoch() and all(len(group) == 2 for group in groups[:-1])


def test_a_line_stands_once_in_the_log_file_however_many_epochs_there_are(tmp_path):
    log, task = tmp_path / "train.log", AllInBatches(SimpleNamespace())
    handlers = list(progress_bar.logger.handlers)
    try:
        for epoch in range(3):  # as fairseq_cli.train does
            bar = progress_bar.progress_bar([1], "json", log_file=str(log), epoch=epoch)
            task.begin_epoch(epoch, None)
            bar.print({"loss": epoch}, tag="valid")
    finally:
        progress_bar.logger.handlers[:] = handlers
    assert [line.count("valid_loss") for line in log.read_text().splitlines()] == [1, 1, 1]
