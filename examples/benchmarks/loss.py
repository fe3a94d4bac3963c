"""Race trainings that never hold all logits against fairseq's Transformer as fairseq trains it.

python examples/benchmarks/loss.py --size base --csv examples/benchmarks/loss.csv

Rates are by the second of processor time where there is no accelerator, with all threads added up:
others who use the machine then cost less of the ratio.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from races.report import append_rows, make_rows, print_table
from races.rounds import Rival, race
from races.train import SIZES, Case, list_rivals

import resmlp_mt  # noqa: F401

CHUNKS = "--criterion label_smoothed_cross_entropy_in_chunks"
MODELS = ["transformer", "paper", "plus"]  # in the order of list_rivals


class Training:
    """A rival of `list_rivals`, timed by the processor."""

    def __init__(self, build: Callable, arguments: dict):
        self.train = build(**arguments)

    def __call__(self, case: Case) -> dict[str, float]:
        """Do a case's updates."""
        start = time.process_time()
        figures = self.train(case)
        seconds = time.process_time() - start
        if not torch.cuda.is_available():
            figures["rate"] = case.updates * case.tokens / seconds
        return figures


def main() -> None:
    """Race them in turn; all are in memory together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=MODELS, help="that train in chunks"
    )
    parser.add_argument("--vocab-size", type=int, default=32768, metavar="N")
    parser.add_argument("--flags", default="", metavar="FLAGS", help="more for fairseq-train")
    parser.add_argument("--max-tokens", type=int, default=2048, metavar="N")
    parser.add_argument("--length", type=int, nargs="+", default=[32], metavar="N")
    parser.add_argument("--updates", type=int, default=1, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    flags = arguments.flags.split()
    in_chunks = list_rivals(arguments.size, [*flags, *CHUNKS.split()])
    models = {
        "": list_rivals(arguments.size, flags)[:1],
        ", chunks": [in_chunks[MODELS.index(model)] for model in arguments.models],
    }
    rivals = []
    for loss, trained in models.items():
        for model in trained:
            given = model.arguments | {"vocabulary": arguments.vocab_size}
            how = {"build": model.build, "arguments": given}
            rivals.append(Rival(f"{model.name}{loss}", Training, how))
    cases = [Case(n, arguments.max_tokens, arguments.updates) for n in arguments.length]
    results = race(rivals, cases, arguments.rounds, arguments.threads, sys.stderr.isatty())
    described = {"size": arguments.size, "vocabulary": arguments.vocab_size}
    described["flags"] = arguments.flags
    rows = make_rows(results, arguments.rounds, arguments.threads, **described)
    print_table(rows)
    append_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
