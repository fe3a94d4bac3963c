"""The time of a command from the first to the last instruction, against an import of torch.

    python examples/benchmarks/startup.py --csv examples/benchmarks/startup.csv

The commands run in turn, round by round, each in a process of its own. `ratio` is the median over
the rounds of a command's seconds divided by those of `import torch` in the same round.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from races.report import append_rows, describe_here, describe_ratios, print_table

from resmlp_mt.export.writer import export_model
from resmlp_mt.files.finding import find_checkpoint

FIRST = "import torch"
TEXT = "A man rides a bike."
_MEASURE = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(time.perf_counter() - start, used.ru_maxrss)  # KiB on Linux
sys.exit(bool(status))
"""


def main() -> None:
    """Measure, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        commands = list_commands(Path(name))
        if arguments.rounds > 1:  # from the disk into memory
            for command in commands.values():
                measure(command)
        rounds = [{n: measure(c) for n, c in commands.items()} for _ in range(arguments.rounds)]
    rows = [describe(name, rounds) for name in commands]
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def list_commands(folder: Path) -> dict[str, list[str]]:
    """The commands by name, with what they need in a folder."""
    translator, classifier = folder / "translator", folder / "classifier"
    export_model("multi30k-en-de", translator, int8=True)
    export_model("cifar10", classifier, int8=True)
    Image.linear_gradient("L").convert("RGB").save(folder / "picture.png")
    ours, checkpoint = (
        [sys.executable, "-m", "resmlp_mt.cli"],
        str(find_checkpoint("multi30k-en-de")),
    )
    return {
        FIRST: [sys.executable, "-c", FIRST],
        "resmlp-mt --help": [*ours, "--help"],
        "translate --help": [*ours, "translate", "--help"],
        "translate, exported": [*ours, "translate", "--model", str(translator), TEXT],
        "classify, exported": [*ours, "classify", str(classifier), str(folder / "picture.png")],
        "translate, checkpoint": [*ours, "translate", "--model", checkpoint, TEXT],
    }


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds, and the most memory in MiB.

    Raises:
        SystemExit: If the command fails.
    """
    # A child's most memory is at least its parent's, so a small process starts it.
    found = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURE, *command], capture_output=True, text=True
    )
    if found.returncode:
        sys.exit(f"{' '.join(command)} failed: {found.stderr}")
    seconds, kib = found.stdout.split()
    return float(seconds), float(kib) / 2**10


def describe(name: str, rounds: list[dict[str, tuple[float, float]]]) -> dict:
    """A row of the table."""
    ratios = [measured[name][0] / measured[FIRST][0] for measured in rounds]
    return {
        "rival": name,
        "seconds": f"{statistics.median(measured[name][0] for measured in rounds):.3f}",
        **describe_ratios(ratios),
        "memory_mib": f"{max(measured[name][1] for measured in rounds):.0f}",
        "rounds": len(rounds),
        **describe_here(),
    }


if __name__ == "__main__":
    main()
