"""Race options of a training against its plain form: an optimizer, compilation, precision.

python examples/benchmarks/options.py --size iwslt --csv examples/benchmarks/options.csv

An option is flags of fairseq-train, or a plainer part in the place of ours.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from races.report import append_rows, make_rows, print_table
from races.rounds import Rival, race
from races.train import SIZES, Case, list_rivals
from torch import nn

import resmlp_mt  # noqa: F401
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.optim import muon

OPTIONS = ["", "--optimizer adamw", "--torch-compile", "--bf16"]


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument(
        "--options", nargs="+", default=OPTIONS, metavar="FLAGS",
        help=f"the first is compared with; flags, or {' or '.join(map(repr, PLAINER))}",
    )  # fmt: skip
    parser.add_argument("--flags", default="", metavar="FLAGS", help="for all of them")
    parser.add_argument("--max-tokens", type=int, default=2048, metavar="N")
    parser.add_argument("--length", type=int, default=32, metavar="N")
    parser.add_argument("--updates", type=int, default=1, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    rivals = []
    # argparse takes a flag for a value where there is a blank in it.
    for option in map(str.strip, arguments.options):
        flags = f"{arguments.flags} {'' if option in PLAINER else option}".split()
        for rival in list_rivals(arguments.size, flags)[1:]:  # without the Transformer
            how = {"rival": rival, "option": option}
            rivals.append(Rival(f"{rival.name} {option}".strip(), build, how))
    case = Case(arguments.length, arguments.max_tokens, arguments.updates)
    for model in range(2):  # the paper's and "plus", each against itself
        results = race(
            rivals[model::2], [case], arguments.rounds, arguments.threads, sys.stderr.isatty()
        )
        described = {"size": arguments.size, "flags": arguments.flags}
        rows = make_rows(results, arguments.rounds, arguments.threads, **described)
        print_table(rows)
        append_rows(arguments.csv, rows)


def build(rival: Rival, option: str) -> Callable:
    """In its own process: the training, with a plainer part where that is the option."""
    if option in PLAINER:
        PLAINER[option]()
    return rival.build(**rival.arguments)


def take_torchs_dropout() -> None:
    """Draw each number of a mask by itself."""
    Dropout.forward = nn.Dropout.forward


def part_matrices() -> None:
    """Let Muon work on a matrix at a time, in fp32."""
    together = muon.orthogonalize_all
    muon.multiplies_bf16 = lambda: False
    muon.orthogonalize_all = lambda matrices: [together([matrix])[0] for matrix in matrices]


PLAINER = {
    "with torch's dropout": take_torchs_dropout,
    "with a matrix at a time": part_matrices,
}

if __name__ == "__main__":
    main()
