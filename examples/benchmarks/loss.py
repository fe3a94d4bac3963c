"""Race trainings that never hold all logits against fairseq's Transformer as fairseq trains it.

python examples/benchmarks/loss.py --size base --csv examples/benchmarks/loss.csv
"""

import argparse
import sys
from pathlib import Path

import resmlp_mt  # noqa: F401
from resmlp_mt.benchmark.report import append_rows, make_rows, print_table
from resmlp_mt.benchmark.rounds import Rival, race
from resmlp_mt.benchmark.train import SIZES, Case, list_rivals

CHUNKS = "--criterion label_smoothed_cross_entropy_in_chunks"


def main() -> None:
    """Race each model in turn, so that only two or three are in memory at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--vocab-size", type=int, default=32768, metavar="N")
    parser.add_argument(
        "--stock", action="store_true", help="race each model with fairseq's criterion too"
    )
    parser.add_argument("--flags", default="", metavar="FLAGS", help="more for fairseq-train")
    parser.add_argument("--max-tokens", type=int, default=2048, metavar="N")
    parser.add_argument("--length", type=int, nargs="+", default=[32], metavar="N")
    parser.add_argument("--updates", type=int, default=1, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    flags, entries = arguments.flags.split(), {"vocabulary": arguments.vocab_size}
    plain, ours = (
        [Rival(rival.name, rival.build, rival.arguments | entries) for rival in rivals]
        for rivals in (
            list_rivals(arguments.size, more) for more in (flags, [*flags, *CHUNKS.split()])
        )
    )
    cases = [Case(n, arguments.max_tokens, arguments.updates) for n in arguments.length]
    described = {"size": arguments.size, "vocabulary": arguments.vocab_size}
    for model, other in zip(ours, plain, strict=True):
        rivals = [plain[0], Rival(f"{model.name}, chunks", model.build, model.arguments)]
        if arguments.stock and other is not plain[0]:
            rivals.insert(1, other)
        results = race(
            rivals, cases, arguments.rounds, arguments.threads, progress=sys.stderr.isatty()
        )
        rows = make_rows(
            results, arguments.rounds, arguments.threads, **described, flags=arguments.flags
        )
        print_table(rows)
        append_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
