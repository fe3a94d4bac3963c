"""Defects of fairseq, seen in fairseq alone: each function fails where fairseq has mended it.

They run in processes without the plugin. This module imports nothing of ours.
"""

import importlib.util
import os
import resource
import signal
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy
import torch
from fairseq import checkpoint_utils, options
from fairseq.data import data_utils
from fairseq.dataclass.configs import CheckpointConfig, DistributedTrainingConfig
from fairseq.distributed.utils import infer_init_method
from fairseq.file_io import PathManager
from fairseq.optim.fused_lamb import FairseqLAMB


def fails(kinds, call, *args) -> str:
    """The message of a call's error, which must be of one of these kinds."""
    try:
        call(*args)
    except kinds as error:
        return str(error)
    raise AssertionError("it does not fail")


def run(defect, folder) -> None:
    """Run one of these functions, in a process of its own."""
    os.environ |= {"MASTER_ADDR": "x", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"}
    os.environ["SECRET"] = "shibboleth"
    defect(folder)
    # Else what was seen is of fairseq as it is mended here.
    assert not any(name.startswith("resmlp_mt") for name in sys.modules)


# translation


def the_last_sentences_are_in_no_batch(folder):
    sizes = numpy.full(30, 5)
    batches = data_utils.batch_by_size(
        numpy.arange(30), sizes.__getitem__, sizes, max_sentences=8, required_batch_size_multiple=8
    )
    assert sum(map(len, batches)) < 30


# lamb


def lamb_needs_apex(folder):
    if importlib.util.find_spec("apex") is None:
        args = Namespace(lr=[0.1], lamb_betas="(0.9, 0.999)", lamb_eps=1e-8, weight_decay=0.0)
        fails(ImportError, FairseqLAMB, args, [torch.nn.Parameter(torch.ones(2))])


# checkpoints safe


def a_configuration_reads_the_environment(folder):
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "asks.pt"))
    assert state["cfg"].task.data == "shibboleth"


# checkpoints whole


def limit_files(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def a_copy_that_fails_leaves_nothing_whole(folder):
    new, old = folder / "new.pt", folder / "old.pt"
    new.write_bytes(b"n" * 20_000)
    old.write_bytes(b"o" * 9_000)
    limit_files(10_000)
    fails(OSError, PathManager.copy, str(new), str(old), True)
    assert old.read_bytes() != b"o" * 9_000


# going on


def a_training_starts_afresh_where_its_checkpoint_is_missing(folder):
    class Trainer:
        """As much as is asked for, where there is no checkpoint."""

        checkpoint_suffix = ""

        def load_checkpoint(self, path, *args, **kwargs):
            assert not Path(path).exists()

        def get_train_iterator(self, epoch, **kwargs):
            return SimpleNamespace(epoch=epoch)

        def lr_step(self, epoch):
            pass

    cfg = CheckpointConfig(save_dir=str(folder), restore_file=str(folder / "nosuch.pt"))
    extra_state, iterator = checkpoint_utils.load_checkpoint(cfg, Trainer())
    assert extra_state is None and iterator.epoch == 1


# flags


def bf16_is_taken_for_a_wish_for_a_tpu(folder):
    line = ["--arch", "transformer_tiny", "--bf16", str(folder)]
    flags = options.parse_args_and_arch(options.get_training_parser(), line)
    assert flags.tpu and flags.distributed_backend == "nccl"


# workers


def workers_on_cpus_do_not_meet(folder):
    torch.cuda.device_count = lambda: 0
    # Without a GPU, 1 is the default, whatever torchrun started.
    cfg = DistributedTrainingConfig(tpu=False, distributed_world_size=1)
    infer_init_method(cfg)
    assert cfg.distributed_init_method is None
    cfg.distributed_world_size = 2
    fails(ZeroDivisionError, infer_init_method, cfg)


# training


def sigterm_is_left_to_kill(folder):
    """Train on fairseq's own data until it is killed, which the test looks at from without."""
    from fairseq_cli import train

    sys.argv = ["fairseq-train", "--task", "dummy_mt", "--arch", "transformer_tiny"]
    sys.argv += ["--dict-size", "40", "--src-len", "5", "--tgt-len", "5", "--dataset-size", "99999"]
    sys.argv += ["--optimizer", "adam", "--lr", "0.1", "--batch-size", "9", "--cpu"]
    sys.argv += ["--criterion", "cross_entropy", "--disable-validation"]
    sys.argv += ["--save-dir", str(folder / "out")]
    sys.argv += ["--log-format", "json", "--log-interval", "1", "--num-workers", "0"]
    train.cli_main()


OF_PATCHES = {
    "translation": the_last_sentences_are_in_no_batch,
    "lamb": lamb_needs_apex,
    "checkpoints safe": a_configuration_reads_the_environment,
    "checkpoints whole": a_copy_that_fails_leaves_nothing_whole,
    "going on": a_training_starts_afresh_where_its_checkpoint_is_missing,
    "flags": bf16_is_taken_for_a_wish_for_a_tpu,
    "workers": workers_on_cpus_do_not_meet,
    "training": sigterm_is_left_to_kill,
}

if __name__ == "__main__":
    run(globals()[sys.argv[1]], Path(sys.argv[2]))
