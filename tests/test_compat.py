import argparse
import warnings

import numpy
import omegaconf
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils

from resmlp_mt import compat


def reload(value, path):
    torch.save({"x": value}, path)
    return torch.load(path, weights_only=True)["x"]


@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(a=1, b=[argparse.Namespace(c="x")]),
        numpy.float64(2.5),
        numpy.int32(3),
        numpy.arange(6, dtype=numpy.int16).reshape(2, 3),
        omegaconf.OmegaConf.create({"a": 1, "b": [1, "x", {"c": 2.5, "d": None}], "e": True}),
        omegaconf.OmegaConf.create([1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_fairseq_writes_load_without_running_code(value, tmp_path):
    loaded = reload(value, tmp_path / "x.pt")
    assert type(loaded) is type(value)
    assert numpy.all(loaded == value)


def test_arrays_of_objects_are_still_refused(tmp_path):
    with pytest.raises(Exception, match="[Uu]nsupported|Weights only"):
        reload(numpy.array([object()]), tmp_path / "x.pt")


def test_known_noise_is_dropped_and_other_warnings_are_not():
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        compat.silence_noise()
        warnings.warn("hydra.experimental.compose() is no longer experimental.", stacklevel=1)
        warnings.warn("\nThe version_base parameter is not specified.", stacklevel=1)
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated.", FutureWarning, stacklevel=1
        )
        assert not caught
        warnings.warn("the learning rate is zero", stacklevel=1)
        warnings.warn("torch.something is deprecated", FutureWarning, stacklevel=1)
    assert len(caught) == 2


def test_applying_twice_changes_nothing():
    before = checkpoint_utils.load_checkpoint_to_cpu
    compat.apply()
    assert checkpoint_utils.load_checkpoint_to_cpu is before
    assert hasattr(before, "__wrapped__")


@pytest.mark.parametrize("count", [1, 7, 8, 30, 33])
@pytest.mark.parametrize("options", [{"max_sentences": 8}, {"max_tokens": 100}])
def test_every_sentence_is_in_a_batch(count, options):
    lengths = numpy.random.default_rng(1).integers(1, 10, count)
    batches = data_utils.batch_by_size(
        numpy.arange(count),
        num_tokens_fn=lengths.__getitem__,
        num_tokens_vec=lengths,
        required_batch_size_multiple=8,
        **options,
    )
    assert numpy.concatenate(batches).tolist() == list(range(count))
    assert all(len(b) <= options.get("max_sentences", count) for b in batches)
    assert all(lengths[b].max() * len(b) <= options.get("max_tokens", 10**6) for b in batches)
