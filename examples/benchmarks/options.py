"""Race options of a training against its plain form: an optimizer, compilation, precision.

python examples/benchmarks/options.py --size iwslt --csv examples/benchmarks/options.csv
"""

import argparse
import sys
from pathlib import Path

import resmlp_mt  # noqa: F401
from resmlp_mt.benchmark.report import append_rows, make_rows, print_table
from resmlp_mt.benchmark.rounds import Rival, race
from resmlp_mt.benchmark.train import SIZES, Case, list_rivals

OPTIONS = ["", "--optimizer adamw", "--torch-compile", "--bf16"]


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument(
        "--options", nargs="+", default=OPTIONS, metavar="FLAGS", help="the first is compared with"
    )
    parser.add_argument("--max-tokens", type=int, default=2048, metavar="N")
    parser.add_argument("--length", type=int, default=32, metavar="N")
    parser.add_argument("--updates", type=int, default=1, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    rivals = [
        Rival(f"{rival.name} {flags}".strip(), rival.build, rival.arguments)
        for flags in arguments.options
        for rival in list_rivals(arguments.size, flags.split())[1:]  # without the Transformer
    ]
    case = Case(arguments.length, arguments.max_tokens, arguments.updates)
    for model in range(2):  # the paper's and "plus", each against itself
        results = race(
            rivals[model::2], [case], arguments.rounds, arguments.threads, sys.stderr.isatty()
        )
        rows = make_rows(results, arguments.rounds, arguments.threads, size=arguments.size)
        print_table(rows)
        append_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
