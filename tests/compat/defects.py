"""What is wrong in fairseq, seen in fairseq alone: each function fails where fairseq has mended it.

They run in processes without the plugin. This module imports nothing of ours.
"""

import contextlib
import importlib.util
import io
import logging
import os
import random
import resource
import signal
import socket
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy
import torch
from fairseq import checkpoint_utils, optim, options
from fairseq.data import ConcatDataset, Dictionary, FairseqDataset, data_utils
from fairseq.data.iterators import (
    CountingIterator,
    EpochBatchIterator,
    GroupedIterator,
)
from fairseq.dataclass.configs import CheckpointConfig, DistributedTrainingConfig
from fairseq.distributed.utils import (
    _infer_single_node_init,
    infer_init_method,
)
from fairseq.file_io import PathManager
from fairseq.logging import progress_bar
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.nan_detector import NanDetector
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.optim.fused_lamb import FairseqLAMB
from fairseq.search import DiverseBeamSearch, LexicallyConstrainedBeamSearch
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationConfig


def fails(kinds, call, *args) -> str:
    """What a call ends with, which must be an error of one of these kinds."""
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


class Shuffled(FairseqDataset):
    """Sentences of one length."""

    def __init__(self, count):
        self.sizes = numpy.full(count, 5)

    def __getitem__(self, i):
        return i

    def __len__(self):
        return len(self.sizes)

    def num_tokens(self, i):
        return 5

    def num_tokens_vec(self, indices):
        return self.sizes[indices]

    def collater(self, samples):
        return samples

    def ordered_indices(self):
        return numpy.random.permutation(len(self))


# translation


def the_last_sentences_are_in_no_batch(folder):
    sizes = numpy.full(30, 5)
    batches = data_utils.batch_by_size(
        numpy.arange(30), sizes.__getitem__, sizes, max_sentences=8, required_batch_size_multiple=8
    )
    assert sum(map(len, batches)) < 30


def a_later_epoch_has_other_batches(folder):
    def batches(epoch):
        task = FairseqTask(SimpleNamespace())
        return task.get_batch_iterator(Shuffled(30), max_sentences=4, epoch=epoch).frozen_batches

    assert [b.tolist() for b in batches(1)] != [b.tolist() for b in batches(3)]


def the_place_in_an_epoch_is_that_of_one_worker(folder):
    data = Shuffled(20)
    before, after = (
        EpochBatchIterator(data, list, [[i] for i in range(20)], num_shards=n) for n in (2, 1)
    )
    next(before.next_epoch_itr(shuffle=False))
    after.load_state_dict(before.state_dict())
    assert after.iterations_in_epoch == 1  # of the 2 batches that both had


def nothing_is_shuffled_after_a_curriculum(folder):
    batches = EpochBatchIterator(
        Shuffled(20), list, [[i] for i in range(20)], reuse_dataloader=True
    )
    first, second = (list(batches.next_epoch_itr(shuffle=epoch > 1)) for epoch in (1, 2))
    assert first == second == [[i] for i in range(20)]


def diverse_beams_fail_beyond_the_first_batch(folder):
    search = DiverseBeamSearch(Dictionary(), 2, 0.5)
    scores, sentences = torch.zeros(2, 4, 1), torch.tensor([7, 8])
    search.step(0, torch.rand(2, 4, 9), None, None, sentences)
    fails(IndexError, search.step, 1, torch.rand(2, 4, 9), scores, None, sentences)


def repeats_are_not_barred_on_cpus(folder):
    block = NGramRepeatBlock(2, use_extension=False)
    tokens = torch.tensor([[2, 5, 6, 5, 1, 1, 1]])  # 5 6 would be a repeat; behind is padding
    assert block(tokens, torch.zeros(1, 9), 1, 1, 3)[0, 6] == 0


def constraints_of_binarized_data_fail(folder):
    search = LexicallyConstrainedBeamSearch(Dictionary(), "ordered")
    fails(TypeError, search.init_constraints, None, 5)


def a_line_stands_in_the_log_file_once_for_every_epoch(folder):
    for epoch in range(3):
        bar = progress_bar.progress_bar([1], "json", log_file=str(folder / "log"), epoch=epoch)
    progress_bar.logger.setLevel(logging.INFO)
    bar.print({"loss": 1}, tag="valid")
    assert (folder / "log").read_text().count("valid_loss") == 3


def a_broken_dictionary_has_no_name(folder):
    (folder / "dict.txt").write_text("a 1\nb\n")
    assert "dict.txt" not in fails(ValueError, Dictionary.load, str(folder / "dict.txt"))


def a_language_with_a_hyphen_is_not_known_by_the_data(folder):
    (folder / "data").mkdir()
    for name in ("dict.en.txt", "dict.zh-Hans.txt", "train.en-zh-Hans.en.idx"):
        (folder / "data" / name).touch()
    assert data_utils.infer_language_pair(str(folder / "data")) == ["zh", "Hans"]


def a_second_set_to_train_on_fails(folder):
    ratios = [TranslationConfig().upsample_primary, 1]
    both = ConcatDataset([Shuffled(3), Shuffled(4)], ratios)
    assert "negative" in fails(ValueError, lambda: both.sizes)


# lamb


def lamb_needs_apex(folder):
    if importlib.util.find_spec("apex") is None:
        args = Namespace(lr=[0.1], lamb_betas="(0.9, 0.999)", lamb_eps=1e-8, weight_decay=0.0)
        fails(ImportError, FairseqLAMB, args, [torch.nn.Parameter(torch.ones(2))])


# checkpoints safe


def a_configuration_reads_the_environment(folder):
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "asks.pt"))
    assert state["cfg"].task.data == "shibboleth"


def a_broken_checkpoint_is_not_named(folder):
    (folder / "half.pt").write_bytes((folder / "asks.pt").read_bytes()[:-99])
    path = str(folder / "half.pt")
    said = fails((RuntimeError, OSError), checkpoint_utils.load_checkpoint_to_cpu, path)
    assert "half.pt" not in said


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


def a_full_disk_is_left_with_a_part(folder):
    limit_files(10_000)
    state, path = {"x": torch.zeros(9_000)}, str(folder / "new.pt")
    fails(Exception, checkpoint_utils.torch_persistent_save, state, path)
    assert Path(f"{path}.tmp").stat().st_size > 0


# going on


def a_training_starts_afresh_where_its_checkpoint_is_missing(folder):
    class Trainer:
        """What is asked for, where there is no checkpoint."""

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


def an_optimizer_takes_the_state_of_another_model(folder):
    cfg = Namespace(
        optimizer="adam", lr=[0.1], adam_betas="(0.9, 0.98)", adam_eps=1e-8, weight_decay=0.0
    )

    def build(size):
        parameter = torch.nn.Parameter(torch.ones(size))
        optimizer = optim.build_optimizer(cfg, [parameter])
        parameter.sum().backward()
        optimizer.step()
        return optimizer

    optimizer = build(4)
    optimizer.load_state_dict(build(3).state_dict())
    fails(RuntimeError, optimizer.step)


def the_last_group_is_left_out(folder):
    groups = GroupedIterator(CountingIterator(range(7, 16), start=7), 2)
    assert sum(groups, []) != list(range(7, 16))


# flags


def bf16_is_taken_for_a_wish_for_a_tpu(folder):
    flags = parse("--bf16", str(folder))
    assert flags.tpu and flags.distributed_backend == "nccl"


def an_archive_is_listed_as_a_folder(folder):
    (folder / "images.tar").touch()
    fails(OSError, data_utils._find_extra_valid_paths, str(folder / "images.tar"))


def a_wrong_value_is_answered_with_all_flags(folder):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        fails(SystemExit, parse, "--criterion", "nonsense", str(folder))
    assert said.getvalue().startswith("usage:") and said.getvalue().count("[--") > 100


def a_folder_to_start_from_is_no_checkpoint(folder):
    (folder / "checkpoint_best.pt").touch()
    flags = parse("--finetune-from-model", str(folder), str(folder))
    assert flags.finetune_from_model == str(folder)


def parse(*flags):
    line = ["--arch", "transformer_tiny", *flags]
    return options.parse_args_and_arch(options.get_training_parser(), line)


def the_search_for_nan_fails(folder):
    args = Namespace(encoder_layers=1, decoder_layers=1, encoder_embed_dim=8, decoder_embed_dim=8)
    args.encoder_ffn_embed_dim = args.decoder_ffn_embed_dim = 8
    args.encoder_attention_heads = args.decoder_attention_heads = 1
    base_architecture(args)
    task = SimpleNamespace(source_dictionary=Dictionary(), target_dictionary=Dictionary())
    model = TransformerModel.build_model(args, task).train()
    tokens = torch.tensor([[3, 2]])
    with NanDetector(model):
        fails(Exception, model, tokens, torch.tensor([2]), tokens)
    model(tokens, torch.tensor([2]), tokens)


# workers


def workers_on_cpus_do_not_meet(folder):
    torch.cuda.device_count = lambda: 0
    # Without a GPU, 1 is the default, whatever torchrun started.
    cfg = DistributedTrainingConfig(tpu=False, distributed_world_size=1)
    infer_init_method(cfg)
    assert cfg.distributed_init_method is None
    cfg.distributed_world_size = 2
    fails(ZeroDivisionError, infer_init_method, cfg)


def workers_meet_at_a_port_that_is_taken(folder):
    with take_the_port_that_is_drawn() as taken:
        assert find_meeting(_infer_single_node_init) == taken


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


def find_meeting(infer_single_node_init) -> int:
    """The port at which the workers meet that fairseq starts."""
    cfg = DistributedTrainingConfig(distributed_world_size=0)
    infer_single_node_init(cfg)
    assert cfg.distributed_init_method == f"tcp://localhost:{cfg.distributed_port}"
    return cfg.distributed_port


# training


def sigterm_is_left_to_kill(folder):
    """Train until it is killed, within an epoch, which the test looks at from without."""
    train_on_nothing(folder, "--dataset-size", "99999")


def a_training_that_is_done_makes_an_update_more(folder):
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # or it could not go on at all
    for _ in range(2):
        train_on_nothing(folder, "--max-update", "1")
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "out" / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == 2


def train_on_nothing(folder, *flags):
    """Train on fairseq's own data."""
    from fairseq_cli import train

    sys.argv = ["fairseq-train", "--task", "dummy_mt", "--arch", "transformer_tiny"]
    sys.argv += ["--dict-size", "40", "--src-len", "5", "--tgt-len", "5", "--dataset-size", "99"]
    sys.argv += ["--optimizer", "adam", "--lr", "0.1", "--batch-size", "9", "--cpu"]
    sys.argv += ["--criterion", "cross_entropy", "--disable-validation"]
    sys.argv += ["--save-dir", str(folder / "out"), "--log-file", str(folder / "log")]
    sys.argv += ["--log-format", "json", "--log-interval", "1", "--num-workers", "0", *flags]
    train.cli_main()


OF_PATCHES = {
    "translation": [
        the_last_sentences_are_in_no_batch,
        a_later_epoch_has_other_batches,
        the_place_in_an_epoch_is_that_of_one_worker,
        nothing_is_shuffled_after_a_curriculum,
        diverse_beams_fail_beyond_the_first_batch,
        repeats_are_not_barred_on_cpus,
        constraints_of_binarized_data_fail,
        a_line_stands_in_the_log_file_once_for_every_epoch,
        a_broken_dictionary_has_no_name,
        a_language_with_a_hyphen_is_not_known_by_the_data,
        a_second_set_to_train_on_fails,
    ],
    "lamb": [lamb_needs_apex],
    "checkpoints safe": [a_configuration_reads_the_environment, a_broken_checkpoint_is_not_named],
    "checkpoints whole": [
        a_copy_that_fails_leaves_nothing_whole,
        a_full_disk_is_left_with_a_part,
    ],
    "going on": [
        a_training_starts_afresh_where_its_checkpoint_is_missing,
        an_optimizer_takes_the_state_of_another_model,
        the_last_group_is_left_out,
    ],
    "flags": [
        a_wrong_value_is_answered_with_all_flags,
        bf16_is_taken_for_a_wish_for_a_tpu,
        an_archive_is_listed_as_a_folder,
        a_folder_to_start_from_is_no_checkpoint,
    ],
    "workers": [workers_on_cpus_do_not_meet, workers_meet_at_a_port_that_is_taken],
    "training": [
        sigterm_is_left_to_kill,
        a_training_that_is_done_makes_an_update_more,
        the_search_for_nan_fails,
    ],
}

if __name__ == "__main__":
    run(globals()[sys.argv[1]], Path(sys.argv[2]))
