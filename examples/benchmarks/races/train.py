"""Tokens per second and memory of full updates: forward, backward, optimizer, by fairseq's Trainer.

The batches are random tokens, the same for all rivals; the sentences of both sides have one length.
"""

import argparse
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode

from races.rounds import Rival, peak_memory
from resmlp_mt.compat.flags import check_hardware
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import scratch_folder

# name: (channels, hidden channels, layers, attention heads, vocabulary, our presets)
SIZES = {
    "tiny": (128, 256, 4, 4, 6000, "resmlp_tiny", "resmlp_plus_tiny"),
    "iwslt": (512, 1024, 6, 4, 10000, "resmlp_iwslt_de_en", "resmlp_plus_iwslt_de_en"),
    "base": (512, 2048, 6, 8, 32768, "resmlp_wmt_en_de", "resmlp_plus_wmt_en_de"),
}
# Flags of fairseq-train that are the same in all races, or say nothing in them.
_OWN = """--arch -a --task --user-dir --source-lang -s --target-lang -t --update-freq --max-tokens
    --batch-size --distributed-world-size""".split()
FIGURES = ("rate", "memory_mib")  # what is measured of each rival
_RECIPE = """--share-all-embeddings --dropout 0.1 --clip-norm 0
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
    --adam-betas (0.9,0.98) --lr 1e-4 --max-source-positions 1024 --max-target-positions 1024
    --distributed-world-size 1 --log-format none --no-progress-bar""".split()


@dataclass(frozen=True)
class Case:
    """An update of so many target tokens, in sentences of this length; so many updates."""

    length: int
    tokens: int
    updates: int


def list_rivals(size: str, flags: list[str], longest: int = 1) -> list[Rival]:
    """fairseq's Transformer of that size and ours.

    Args:
        size: A name in SIZES.
        flags: Of fairseq-train, for all.
        longest: Tokens of the longest sentence that they are to be raced with.

    Raises:
        UserError: If it does not take them, or a model no sentence of that length.
    """
    channels, hidden, layers, heads, vocabulary, paper, plus = SIZES[size]
    transformer = ["--arch", "transformer"]
    for side in ("encoder", "decoder"):
        transformer += [f"--{side}-embed-dim", channels, f"--{side}-ffn-embed-dim", hidden]
        transformer += [f"--{side}-layers", layers, f"--{side}-attention-heads", heads]
    architectures = {
        "transformer": list(map(str, transformer)),
        paper: ["--arch", paper],
        plus: ["--arch", plus],
    }
    if own := [word for word in flags if word.partition("=")[0] in _OWN]:
        raise UserError(f"--flags: a race of trainings takes no {own[0]}")
    flags_of = {name: [*arch, *flags] for name, arch in architectures.items()}
    for words in flags_of.values():
        # What cannot be trained is refused before anything is measured.
        parsed = _parse("data", words)
        check_hardware(parsed)
        for side in ("source", "target"):
            if longest > (most := getattr(parsed, f"max_{side}_positions")):
                raise UserError(
                    f"--length {longest} is longer than --max-{side}-positions, {most}; give "
                    f"--flags='--max-source-positions {longest} --max-target-positions {longest}'"
                )
    return [
        Rival(name, _Updates, dict(flags=words, vocabulary=vocabulary))
        for name, words in flags_of.items()
    ]


def measure_peak(device: str, side: int = 8192, seconds: float = 1.0) -> float:
    """Floating-point operations a second of the product of two square matrices in bf16.

    Args:
        device: As torch names it.
        side: Rows and columns of the matrices. They hold random numbers: products of zeros take
            less power, and so less time.
        seconds: How long it is measured.
    """
    square = torch.randn(side, side, device=device, dtype=torch.bfloat16)
    timer = Timer("square @ square", globals={"square": square})  # it waits for the device
    return 2 * side**3 / timer.blocked_autorange(min_run_time=seconds).median


def write_dictionaries(folder: Path, vocabulary: int) -> None:
    """Write dict.en.txt and dict.de.txt of so many entries, which are the same."""
    for lang in ("en", "de"):
        symbols = Dictionary()
        for i in range(vocabulary - len(symbols)):
            symbols.add_symbol(f"word{i}")
        symbols.save(str(folder / f"dict.{lang}.txt"))


def build_trainer(cfg, task) -> Trainer:
    """A trainer of a new model, to be measured: it leaves no files and no handlers of signals."""
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    before = signal.getsignal(signal.SIGTERM)
    trainer = Trainer(cfg, task, model, criterion)
    signal.signal(signal.SIGTERM, before)  # a training would end with a checkpoint
    # For a log of free memory fairseq would forget the peak after each update.
    trainer.cuda_env = None
    # After a failure it would write crash.pt into the working folder.
    trainer.save_checkpoint = lambda *args: None
    return trainer


def update(trainer: Trainer, batch: dict) -> None:
    """Train on a batch.

    Raises:
        UserError: If the device has too little memory for it.
    """
    try:
        # fairseq would leave the update out, and it would count as a fast one.
        trainer.train_step([batch], raise_oom=True)
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"{batch['ntokens']} tokens are too many for the device's memory: {error}"
        ) from None


def _parse(data: str, flags: list[str]) -> argparse.Namespace:
    words = [data, "--source-lang", "en", "--target-lang", "de", *_RECIPE, *flags]
    return options.parse_args_and_arch(options.get_training_parser(), words)


class _Updates:
    """Trains; called with a case, does its updates."""

    def __init__(self, flags: list[str], vocabulary: int):
        torch.manual_seed(1)
        with scratch_folder() as folder:
            write_dictionaries(folder, vocabulary)
            cfg = convert_namespace_to_omegaconf(_parse(str(folder), flags))
            # All batches have one shape, so that a plan for it pays.
            torch.backends.cuda.enable_cudnn_sdp(True)
            task = tasks.setup_task(cfg.task)
        self.trainer = build_trainer(cfg, task)
        self.symbols = task.target_dictionary

    def __call__(self, case: Case) -> dict[str, float]:
        cuda = self.trainer.cuda
        batch = self._make_batch(case)
        if cuda:
            update(self.trainer, batch)  # takes the memory that the last run gave back
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(case.updates):
            update(self.trainer, batch)
        if cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        memory = torch.cuda.max_memory_allocated() / 2**20 if cuda else peak_memory()
        if cuda:
            torch.cuda.empty_cache()  # all rivals are on one device
        figures = (case.updates * batch["ntokens"] / seconds, memory)
        return dict(zip(FIGURES, figures, strict=True))

    def count(self, length: int) -> float:
        """Floating-point operations of an update's products, for each target token.

        Sums and multiplications by element are not counted, as usual where a share of the peak is
        told. It is meant for a training on the CPU with fairseq's own loss, which has each product
        of the model once forward and twice backward.

        Args:
            length: Tokens of a sentence, on both sides.
        """
        batch = self._make_batch(Case(length, length, 1))
        # Not all kernels of attention are known to the counter; plain products are.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            update(self.trainer, batch)
        return counter.get_total_flops() / batch["ntokens"]

    def _make_batch(self, case: Case) -> dict:
        sentences = max(1, case.tokens // case.length)
        first = self.symbols.nspecial
        words = torch.randint(first, len(self.symbols), (sentences, case.length))
        words[:, -1] = self.symbols.eos()
        return {
            "id": torch.arange(sentences),
            "nsentences": sentences,
            "ntokens": words.numel(),
            "target": words,
            "net_input": {
                "src_tokens": words.flip(1).roll(-1, 1).contiguous(),
                "src_lengths": torch.full((sentences,), case.length),
                "prev_output_tokens": words.roll(1, 1),
            },
        }
