"""Race trainings in bf16 against fairseq's Transformer: speed, memory, and share of the peak.

python examples/benchmarks/gpu_train.py --csv examples/benchmarks/gpu_train.csv

Every rival is measured for --seconds in a round, however fast the GPU is. The first one is the
Transformer with fairseq's own loss. gpu.sh runs this with the options that users would take.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from races.report import (
    append_rows,
    check_table,
    describe_command,
    make_rows,
    print_table,
)
from races.rounds import Result, Rival, race, take_turns
from races.train import SIZES, measure_peak
from races.train import Case as Updates
from races.train import list_rivals as list_models

import resmlp_mt  # noqa: F401
from resmlp_mt.errors import UserError

CHUNKS = "--criterion label_smoothed_cross_entropy_in_chunks"


@dataclass(frozen=True)
class Case:
    """Updates of so many target tokens, in sentences of this length, for so long."""

    length: int
    tokens: int
    seconds: float


class Training:
    """A rival of `list_rivals` that trains for the seconds of a case, whole updates."""

    def __init__(self, build: Callable, arguments: dict):
        self.train = build(**arguments)

    def __call__(self, case: Case) -> dict[str, float]:
        """Do as many updates as fit, by the time of one."""
        rate = self.train(Updates(case.length, case.tokens, 1))["rate"]
        updates = max(1, round(case.seconds * rate / case.tokens))
        figures = self.train(Updates(case.length, case.tokens, updates))
        return {"updates": updates, **figures}


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--vocab-size", type=int, default=32768, metavar="N")
    parser.add_argument("--length", type=int, nargs="+", default=[16, 64, 256], metavar="N")
    parser.add_argument("--max-tokens", type=int, default=32768, metavar="N")
    parser.add_argument(
        "--options", nargs="+", default=[""], metavar="FLAGS",
        help="ways to train ours, each flags of fairseq-train, as '--torch-compile'",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="of a run")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=4, metavar="N")
    parser.add_argument("--matrix", type=int, default=8192, metavar="N", help="side, for the peak")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU; --device cpu tries the script on the processor")
    try:
        measure(arguments)
    except UserError as error:
        parser.exit(2, f"gpu_train.py: {error}\n")


def measure(arguments: argparse.Namespace) -> None:
    """Race them in turn, count what they computed, and append the rows.

    Raises:
        UserError: If the file has other columns, or the device too little memory.
    """
    check_table(arguments.csv)
    peak = measure_peak(arguments.device, arguments.matrix, arguments.seconds)
    counts = count(arguments)
    rivals = list_rivals(arguments)
    cases = [Case(n, arguments.max_tokens, arguments.seconds) for n in arguments.length]
    if arguments.device == "cuda":  # each has memory of its own
        results = race(rivals, cases, arguments.rounds, arguments.threads, sys.stderr.isatty())
    else:
        runs = [rival.build(**rival.arguments) for rival in rivals]
        results = take_turns([rival.name for rival in rivals], runs, cases, arguments.rounds)
    for i, result in enumerate(results):
        stock = results[i - i % len(rivals)]  # the first rival, in the same case
        share(result, stock, counts[result.rival.split()[0].rstrip(","), result.case.length], peak)
    described = {"size": arguments.size, "vocabulary": arguments.vocab_size, "flags": "--bf16"}
    described |= {"device": arguments.device, "command": describe_command(arguments.csv)}
    rows = make_rows(results, arguments.rounds, arguments.threads, **described)
    print_table(rows)
    append_rows(arguments.csv, rows)


def list_rivals(arguments: argparse.Namespace) -> list[Rival]:
    """The Transformer as fairseq trains it and in chunks, and ours in chunks with each option."""
    on = ["--bf16", *["--cpu"] * (arguments.device == "cpu")]
    in_chunks = [*on, *CHUNKS.split()]
    stock, *_ = list_models(arguments.size, on)
    theirs, *_ = list_models(arguments.size, in_chunks)
    named = [("transformer", stock), ("transformer, chunks", theirs)]
    for option in arguments.options:
        _, *ours = list_models(arguments.size, [*in_chunks, *option.split()])
        named += [(f"{rival.name}, chunks {option}".strip(), rival) for rival in ours]
    size = {"vocabulary": arguments.vocab_size}
    return [
        Rival(name, Training, {"build": rival.build, "arguments": rival.arguments | size})
        for name, rival in named
    ]


def count(arguments: argparse.Namespace) -> dict[tuple[str, int], float]:
    """Operations for each target token, by model and length, counted on the processor."""
    counts = {}
    # Where there is a GPU and apex, fairseq takes apex's Adam on the processor too, and fails.
    for rival in list_models(arguments.size, ["--cpu", "--use-old-adam"]):
        training = rival.build(**rival.arguments | {"vocabulary": arguments.vocab_size})
        counts |= {(rival.name, length): training.count(length) for length in arguments.length}
    return counts


def share(result: Result, stock: Result, operations: float, peak: float) -> None:
    """Add what the figures are a share of: the peak, and the first rival's memory."""
    reached = result.figures["rate"] * operations
    result.figures |= {
        "memory_ratio": result.figures["memory_mib"] / stock.figures["memory_mib"],
        "gflop_token": operations / 1e9,
        "tflops": reached / 1e12,
        "peak_tflops": peak / 1e12,
        "peak_share": reached / peak,
    }


if __name__ == "__main__":
    main()
