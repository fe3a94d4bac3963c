"""Batches that are cut out at once are those that fairseq makes sentence by sentence."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.data import ConcatDataset, Dictionary, LanguagePairDataset, TruncateDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

from resmlp_mt.tasks.batches import AllInBatches
from resmlp_mt.tasks.pairs import PairsInBatches

ENTRIES = 40


def write_sentences(path, count, seed, dtype=np.uint16):
    """A file of sentences of 1 to 12 tokens, the last of which is </s>."""
    draw = np.random.default_rng(seed)
    builder = MMapIndexedDatasetBuilder(f"{path}.bin", dtype=dtype)
    for length in draw.integers(0, 12, count):
        builder.add_item(torch.tensor([*draw.integers(4, ENTRIES, length), 2]))
    builder.finalize(f"{path}.idx")
    return MMapIndexedDataset(str(path))


@pytest.fixture(params=["one file", "two files, the first twice"])
def make_pairs(request, tmp_path):
    """Builds fairseq's data set of pairs, with options."""
    dictionary = Dictionary()
    for i in range(len(dictionary), ENTRIES):
        dictionary.add_symbol(f"word{i}")

    def side(name, seed):
        train = write_sentences(tmp_path / f"train.{name}", 50, seed)
        if request.param == "one file":
            return train, train.sizes
        # Their numbers are stored otherwise, as those of a larger dictionary are.
        other = write_sentences(tmp_path / f"train1.{name}", 30, seed + 9, np.int32)
        joined = ConcatDataset([train, other], sample_ratios=[2, 1])
        return joined, np.concatenate([train.sizes, train.sizes, other.sizes])

    sides = side("en", 1), side("de", 2)

    def make(wrap=lambda dataset: dataset, **options):
        (source, source_sizes), (target, target_sizes) = sides
        return LanguagePairDataset(
            wrap(source), source_sizes, dictionary, target, target_sizes, dictionary, **options
        )

    return make


def assert_same(batch, expected):
    assert batch.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert_same(batch[name], value)
        elif isinstance(value, torch.Tensor):
            assert batch[name].dtype == value.dtype
            assert batch[name].equal(value), name
        else:
            assert batch[name] == value


@pytest.mark.parametrize("left", [(True, False), (False, True)], ids=str)
@pytest.mark.parametrize("multiple", [1, 8])
def test_batches_are_those_of_fairseq(make_pairs, left, multiple):
    pairs = make_pairs(left_pad_source=left[0], left_pad_target=left[1], pad_to_multiple=multiple)
    assert PairsInBatches.can_cut(pairs)
    cut = PairsInBatches(pairs)
    order = np.random.default_rng(3).permutation(len(pairs))
    for batch in [*np.array_split(order, 9), []]:  # as workers get it for whom none is left
        assert_same(cut.__getitems__(batch), pairs.collater([pairs[i] for i in batch]))


def test_a_task_cuts_its_batches_and_reads_no_sentence_alone(make_pairs, monkeypatch):
    pairs = make_pairs()

    def batches():
        task = AllInBatches(SimpleNamespace())
        return list(task.get_batch_iterator(pairs, max_tokens=60).next_epoch_itr())

    with monkeypatch.context() as plain:
        plain.setattr(PairsInBatches, "can_cut", lambda dataset: False)
        expected = batches()

    def refuse(self, index):
        raise AssertionError("a sentence was read alone")

    monkeypatch.setattr(MMapIndexedDataset, "__getitem__", refuse)
    assert len(expected) > 5
    for batch, other in zip(batches(), expected, strict=True):
        assert_same(batch, other)


@pytest.mark.parametrize(
    "options",
    [
        {"append_bos": True},
        {"append_eos_to_target": True},
        {"remove_eos_from_source": True},
        {"input_feeding": False},
        {"src_lang_id": 3},
        {"tgt_lang_id": 3},
        {"wrap": lambda dataset: TruncateDataset(dataset, 5)},
        {"align_dataset": [torch.tensor([0, 0])] * 200},
        {"constraints": torch.ones(200, 2)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_whatever_changes_a_sentence_is_left_to_fairseq(make_pairs, options):
    assert not PairsInBatches.can_cut(make_pairs(**options))


def test_pairs_without_a_target_are_left_to_fairseq(make_pairs):
    pairs = make_pairs()
    assert not PairsInBatches.can_cut(
        LanguagePairDataset(pairs.src, pairs.src_sizes, pairs.src_dict)
    )
