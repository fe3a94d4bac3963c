"""How long `resmlp-mt prepare` takes by the number of its processes.

    python examples/benchmarks/prepare.py -s en -t de --train PREFIX --valid PREFIX --csv FILE

Three jobs, each with so many processes, in turn, round by round: subwords are learnt; subwords are
taken (--like); subwords are taken, and pairs in a wrong language are left out before. The
seconds of processors are those of all processes together: other work on the machine hardly changes
them. Memory is that of the largest process. --pairs repeats the text where it has fewer.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from itertools import chain, islice, repeat
from pathlib import Path

from races.report import append_rows, describe_here, print_table

from resmlp_mt.data.reading import read_pairs

PACKAGES = ("sentencepiece", "sentencex", "py3langid")
JOBS = {"learn": (), "like": (), "filter": ("--remove-wrong-language",)}


def main() -> None:
    """Measure, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", required=True, metavar="PREFIX")
    parser.add_argument("--valid", required=True, metavar="PREFIX")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--pairs", type=int, help="default: those of the text")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, os.cpu_count()])
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    langs = arguments.source_lang, arguments.target_lang
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train"
        pairs = write(arguments.train, langs, text, arguments.pairs)
        command = ["prepare", "-s", langs[0], "-t", langs[1], "--train", text]
        command += ["--valid", arguments.valid]
        like = Path(folder) / "like"  # of the first pairs, for the jobs that take subwords
        write(arguments.train, langs, Path(folder) / "few", min(pairs, 50_000))
        few = ["--train", Path(folder) / "few", "--out", like]
        run([*command, *few], 1)
        seconds = {(job, n): [] for job in arguments.jobs for n in arguments.workers}
        for _ in range(arguments.rounds):
            for (job, workers), found in seconds.items():
                flags = [] if job == "learn" else ["--like", like]
                out = ["--out", Path(folder) / "out"]
                found.append(run([*command, *flags, *JOBS[job], *out], workers))
    rows = []
    for (job, workers), found in seconds.items():
        middle, busy, memory = map(statistics.median, zip(*found, strict=True))
        alone = statistics.median(next(zip(*seconds[job, arguments.workers[0]], strict=True)))
        rows.append(
            {
                "job": job,
                "workers": workers,
                "pairs": pairs,
                "seconds": f"{middle:.1f}",
                "pairs_per_second": round(pairs / middle),
                "ratio": f"{alone / middle:.2f}",
                "processor_seconds": f"{busy:.1f}",
                "memory_mib": round(memory),
                "rounds": arguments.rounds,
                **describe_here(),
                "versions": ", ".join(f"{x} {version(x)}" for x in PACKAGES),
            }
        )
    print_table([{"rival": f"{row['job']}, {row['workers']}", **row} for row in rows])
    if arguments.csv:
        append_rows(arguments.csv, rows)


def write(prefix: str, langs: tuple[str, str], path: Path, pairs: int | None) -> int:
    """Write as many pairs of a text as wanted, repeated where it has fewer; returns how many."""
    if pairs is None:
        text = read_pairs(prefix, *langs)
    else:
        text = islice(chain.from_iterable(read_pairs(p, *langs) for p in repeat(prefix)), pairs)
    count = 0
    with open(f"{path}.{langs[0]}", "w") as source, open(f"{path}.{langs[1]}", "w") as target:
        for pair in text:
            count += 1
            for stream, line in zip((source, target), pair, strict=True):
                stream.write(line + "\n")
    return count


def run(command: list, workers: int) -> tuple[float, float, int]:
    """Seconds of a command, those of processors, and MiB of the largest of its processes."""
    start = time.perf_counter()
    whole = [sys.executable, "-m", "resmlp_mt.cli", *command, "--workers", workers]
    process = subprocess.Popen(list(map(str, whole)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    busy = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - start, busy, usage.ru_maxrss // 1024


if __name__ == "__main__":
    main()
