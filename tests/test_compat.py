import argparse
import contextlib
import os
import random
import signal
import socket
import warnings

import numpy
import omegaconf
import pytest
import torch
from cli.commands import run
from fairseq import options
from fairseq.data import data_utils
from fairseq.dataclass.configs import DistributedTrainingConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed_utils

from resmlp_mt.compat.noise import silence_noise
from resmlp_mt.errors import UserError


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


def test_known_noise_is_dropped_and_other_warnings_are_not():
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        silence_noise()
        warnings.warn("hydra.experimental.compose() is no longer experimental.", stacklevel=1)
        warnings.warn("\nThe version_base parameter is not specified.", stacklevel=1)
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated.", FutureWarning, stacklevel=1
        )
        assert not caught
        warnings.warn("the learning rate is zero", stacklevel=1)
        warnings.warn("torch.something is deprecated", FutureWarning, stacklevel=1)
    assert len(caught) == 2


def test_a_folder_to_start_from_stands_for_its_checkpoint(tmp_path):
    (tmp_path / "checkpoint_best.pt").touch()

    def parse(start):
        line = ["data", "--arch", "resmlp_tiny", "--finetune-from-model", str(start)]
        return options.parse_args_and_arch(options.get_training_parser(), line)

    assert parse(tmp_path).finetune_from_model == str(tmp_path / "checkpoint_best.pt")
    for none, said in ("nix", "nix: no such model"), ("", "--finetune-from-model is empty"):
        with pytest.raises(UserError, match=said):
            parse(none)


@pytest.mark.parametrize(
    "flags",
    [
        "--best-checkpoint-metric bleu --eval-bleu",
        "--best-checkpoint-metric ema_top1",
        "--memory-efficient-bf16 --bf16 --optimizer adagrad",
    ],
)
def test_what_loses_the_best_checkpoint_or_the_weights_is_refused(flags):
    with pytest.raises(UserError, match=flags.split()[0]):
        parse_training(*flags.split())


@pytest.fixture
def fused_attention():
    """Torch's fused attention, whatever the test does to it."""
    torch.backends.cuda.enable_flash_sdp(True)
    yield
    torch.backends.cuda.enable_flash_sdp(True)


def parse_training(*flags):
    return options.parse_args_and_arch(
        options.get_training_parser(), ["data", "--arch", "resmlp_tiny", *flags]
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's fused attention stays")
def test_bf16_on_a_cpu_takes_the_plain_attention(fused_attention):
    for flags, fused in ([], True), (["--bf16"], False):
        parse_training(*flags)
        query = torch.ones(1, 1, 2, 8, dtype=torch.bfloat16)
        with torch.profiler.profile() as profile:
            torch.nn.functional.scaled_dot_product_attention(query, query, query)
        used = {event.key for event in profile.key_averages()}
        assert any("flash" in name for name in used) == fused


@pytest.mark.parametrize("images", [False, True])
def test_texts_on_a_gpu_do_without_plans_for_each_shape(monkeypatch, images):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", (asked := []).append)
    task = ["--task", "image_classification", "--arch", "resmlp_s12"] if images else []
    parse_training(*task)
    assert asked == ([] if images else [False])


@pytest.mark.parametrize("knows", [True, False])
def test_bf16_is_warned_of_where_the_processor_does_not_know_it(
    knows, fused_attention, monkeypatch, caplog
):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: knows)
    parse_training("--cpu", "--bf16")
    assert any("leave it out" in message for message in caplog.messages) != knows
    caplog.clear()
    parse_training("--cpu")
    assert not caplog.messages


def test_forgotten_validation_sets_are_looked_for_in_folders_alone(tmp_path):
    (tmp_path / "valid1.bin").touch()
    (tmp_path / "images.tar").touch()

    def look(data):
        parser, line = options.get_training_parser(), [str(data), "--arch", "resmlp_tiny"]
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, line))
        data_utils.raise_if_valid_subsets_unintentionally_ignored(cfg)

    look(tmp_path / "images.tar")
    with pytest.raises(ValueError, match="valid1"):
        look(tmp_path)


def test_what_fairseq_needs_for_other_tasks_is_imported_when_it_is_called():
    code = """
import sys, resmlp_mt, fairseq
assert not {"sklearn", "scipy"} & sys.modules.keys()
import numpy as np
from fairseq.criterions.sentence_prediction import acc_and_f1, pearson_and_spearman
found = acc_and_f1(np.array([1, 0, 1]), np.array([1, 1, 1]))["f1"]
assert abs(found - 0.8) < 1e-9, found
assert pearson_and_spearman(np.array([1.0, 0, 2]), np.array([1.0, 0, 2]))["pearson"] > 0.99
from fairseq.tasks.audio_classification import sklearn_metrics
assert sklearn_metrics.accuracy_score([1, 0], [1, 1]) == 0.5
"""
    run("python", "-c", code, own=True)


@contextlib.contextmanager
def take_the_port_that_is_drawn():
    """Listen at the port that fairseq draws next, and give its number."""
    os.environ.pop("SLURM_JOB_ID", None)  # from which it would draw
    for seed in range(100):
        random.seed(seed)
        port = random.randint(10000, 60000)
        with contextlib.suppress(OSError), socket.create_server(("localhost", port)):
            random.seed(seed)
            yield port
            return


@pytest.mark.parametrize("job", [None, "12"])
def test_workers_that_fairseq_starts_meet_at_a_free_port_or_at_that_of_their_job(job, monkeypatch):
    def meet():
        cfg = omegaconf.OmegaConf.structured(flags)
        distributed_utils.infer_init_method(cfg)
        assert cfg.distributed_init_method == f"tcp://localhost:{cfg.distributed_port}"
        return cfg.distributed_port

    before = signal.getsignal(signal.SIGTERM)
    flags = DistributedTrainingConfig(distributed_world_size=0, tpu=False)
    try:
        with take_the_port_that_is_drawn() as taken:
            if job:
                monkeypatch.setenv("SLURM_JOB_ID", job)
            ports = {meet(), meet()}
    finally:
        signal.signal(signal.SIGTERM, before)
    assert taken not in ports and min(ports) > 0
    assert len(ports) == 1 if job else max(ports) < 32768  # from where on Linux gives them
