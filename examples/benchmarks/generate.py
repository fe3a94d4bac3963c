"""The speed that fairseq-generate reports, with one of our checkpoints and with a Transformer's.

    python examples/benchmarks/generate.py data-bin/multi30k TRANSFORMER.pt OURS.pt --size tiny \
        --csv examples/benchmarks/generate.csv --max-tokens 4096

Ours is searched in compiled code, and once more in fairseq's own search, as the Transformer is. The
three take turns. Flags that this script does not know are fairseq-generate's.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from races.report import append_rows, check_table, make_rows, print_table
from races.rounds import take_turns

_SAID = re.compile(
    r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in .*?\(([\d.]+) sentences/s"
)


@dataclass
class Case:
    """Models of a size, and the flags of their search.

    Attributes:
        size: A name for the dimensions of the models.
        flags: Of fairseq-generate.
    """

    size: str
    flags: str


def main() -> None:
    """Race, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="of both models; its test set is translated")
    parser.add_argument("transformer", type=Path, help="a checkpoint")
    parser.add_argument("ours", type=Path, help="a checkpoint")
    parser.add_argument("--size", required=True, help="of the models, for the column")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", type=Path)
    arguments, flags = parser.parse_known_args()
    if arguments.csv:
        check_table(arguments.csv)
    fairseq = {"RESMLP_CPU_ISA": "none"}
    rivals = {
        "transformer": (arguments.transformer, fairseq),
        "ours": (arguments.ours, {}),
        "ours, in fairseq's search": (arguments.ours, fairseq),
    }
    runs = [
        generate(arguments.data, path, arguments.threads, variables)
        for path, variables in rivals.values()
    ]
    case = Case(arguments.size, shlex.join(flags))
    results = take_turns([*rivals], runs, [case], arguments.rounds, progress=True)
    rows = make_rows(results, arguments.rounds, arguments.threads)
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def generate(
    data: Path, checkpoint: Path, threads: int, variables: dict[str, str]
) -> Callable[[Case], dict[str, float]]:
    """A run of fairseq-generate, which returns what it says of its speed.

    Args:
        data: The data folder.
        checkpoint: The model.
        threads: Of torch, or of the compiled code.
        variables: Of the environment.
    """
    command = [sys.executable, "-m", "resmlp_mt.cli", "generate", str(data), "--path"]
    command += [str(checkpoint), "--beam", "5"]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)} | variables

    def run(case: Case) -> dict[str, float]:
        words = [*command, *shlex.split(case.flags)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        said = _SAID.search(done.stdout + done.stderr)
        if done.returncode or not said:
            sys.exit(f"{shlex.join(words)} failed: {done.stderr[-2000:]}")
        sentences, tokens, rate = (float(number.replace(",", "")) for number in said.groups())
        return {"rate": rate, "sentences": sentences, "tokens": tokens}

    return run


if __name__ == "__main__":
    main()
