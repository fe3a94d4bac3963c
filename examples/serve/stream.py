"""Translate a long text with `resmlp-mt translate`, whole and with kills, and watch its memory.

python examples/serve/stream.py checkpoints/fast --input long.en --kills 5 --csv stream.csv

The text is translated twice: once to its end, and once killed at random moments and resumed. The
two must be the same, byte for byte.
"""

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tqdm import tqdm

from resmlp_mt.data.reading import read_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows, describe_machine, describe_origin  # noqa: E402


def main() -> None:
    """Run both, print and append the row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="as for resmlp-mt translate")
    parser.add_argument("--input", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--kills", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--beam", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--csv", type=Path, help="where to append the row")
    parser.add_argument("--name", help="what the model is called in the row")
    arguments = parser.parse_args()

    lines = sum(1 for _ in read_lines(arguments.input))
    command = [sys.executable, "-m", "resmlp_mt.cli", "translate", "--model", arguments.model]
    command += ["--input", str(arguments.input), "--beam", str(arguments.beam), "--output"]
    with tempfile.TemporaryDirectory() as folder:
        whole, resumed = Path(folder) / "whole", Path(folder) / "resumed"
        memory, seconds = follow([*command, whole], whole, lines)
        chance = random.Random(1)
        for place in sorted(chance.uniform(0, 0.95) for _ in range(arguments.kills)):
            kill([*command, resumed, "--resume"], resumed, place * lines)
        subprocess.run([*command, resumed, "--resume"], check=True)
        same = whole.read_bytes() == resumed.read_bytes()
        translated = whole.read_bytes().count(b"\n")
    row = {
        "model": arguments.name or arguments.model,
        "lines": lines,
        "beam": arguments.beam,
        "seconds": round(seconds),
        "rate": f"{lines / seconds:.1f}",
        **{f"memory_{share}_mib": f"{mib:.1f}" for share, mib in memory.items()},
        "peak_mib": f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10:.1f}",
        "kills": arguments.kills,
        "same": same,
        **describe_origin(describe_machine()),
    }
    print(json.dumps(row))
    if arguments.csv:
        append_rows(arguments.csv, [row])
    if not same or translated != lines:
        sys.exit(f"{translated} lines of {lines}, the same: {same}")


def follow(command: list, output: Path, lines: int) -> tuple[dict[str, float], float]:
    """Run to the end; returns the memory in MiB after a tenth, a half and nine tenths, and time."""
    memory, start = dict.fromkeys((10, 50, 90), math.nan), time.monotonic()
    with subprocess.Popen(list(map(str, command))) as process, tqdm(total=lines) as bar:
        while process.poll() is None:
            time.sleep(0.2)
            bar.update(lines_done(output) - bar.n)
            for share, seen in memory.items():
                if math.isnan(seen) and 100 * bar.n >= share * lines:
                    memory[share] = resident(process.pid)
    if process.returncode:
        sys.exit(process.returncode)
    return memory, time.monotonic() - start


def kill(command: list, output: Path, place: float) -> None:
    """Run until so many lines are translated, then kill."""
    with subprocess.Popen(list(map(str, command))) as process:
        while process.poll() is None and lines_done(output) < place:
            time.sleep(0.05)
        process.kill()


def lines_done(output: Path) -> int:
    """How far a run is."""
    try:
        return json.loads(output.with_name(f"{output.name}.part.json").read_text())["lines"]
    except FileNotFoundError:
        return 0


def resident(process: int) -> float:
    """Memory of a process in MiB."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 2**10


if __name__ == "__main__":
    main()
