"""Train with each allocator of memory in turn: seconds of the processor, and the most memory.

    python examples/benchmarks/allocators.py data-bin/multi30k --csv allocators.csv

Each training is a process of its own, from its start to its last update. `ratio` is the median over
the rounds of its seconds divided by those of the first in the same round. `system` are those of the
seconds that the kernel takes. tcmalloc and jemalloc come with Debian's libtcmalloc-minimal4 and
libjemalloc2. What is not installed is left out.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from ctypes.util import find_library
from pathlib import Path

from races.report import append_rows, describe_here, describe_ratios, print_table

_FLAGS = """--arch resmlp_plus_tiny --share-all-embeddings --dropout 0.3
--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 5e-3
--max-source-positions 128 --max-target-positions 128 --no-save --disable-validation"""
# What each sets in the environment. The limits of glibc are those of scripts/cpu.sh.
_ALLOCATORS = {
    "glibc": {},
    "glibc, memory kept": {
        "MALLOC_MMAP_THRESHOLD_": str(4 * 2**30),
        "MALLOC_TRIM_THRESHOLD_": str(8 * 2**30),
    },
    "tcmalloc": {"LD_PRELOAD": "tcmalloc_minimal"},
    "jemalloc": {"LD_PRELOAD": "jemalloc"},
    "jemalloc, memory kept": {
        "LD_PRELOAD": "jemalloc",
        "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
    },
}


def main() -> None:
    """Measure, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="folder of `resmlp-mt prepare`, joined")
    parser.add_argument("--updates", type=int, default=400, metavar="N")
    parser.add_argument("--max-tokens", type=int, default=4096, metavar="N")
    parser.add_argument("--flags", default="", help="more of fairseq-train's, such as --bf16")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "resmlp_mt.cli", "train", arguments.data, *_FLAGS.split()]
    command += ["--max-tokens", str(arguments.max_tokens), "--max-update", str(arguments.updates)]
    command += arguments.flags.split()
    allocators = find_allocators()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:  # which stays empty
        command += ["--save-dir", folder]
        for _ in range(arguments.rounds):
            rounds.append({name: measure(command, added) for name, added in allocators.items()})
    rows = [describe(name, rounds) | {"updates": arguments.updates} for name in allocators]
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def find_allocators() -> dict[str, dict[str, str]]:
    """The environment of each allocator that is installed. Prints which are not."""
    found = {}
    for name, added in _ALLOCATORS.items():
        library = find_library(added.get("LD_PRELOAD", "c"))
        if library is None:
            print(f"{name} is not installed", file=sys.stderr)
        else:
            found[name] = added | ({"LD_PRELOAD": library} if "LD_PRELOAD" in added else {})
    return found


def measure(command: list[str], added: dict[str, str]) -> dict[str, float]:
    """Seconds of the processor, those of the kernel, and the most memory in MiB.

    Raises:
        SystemExit: If the training fails.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "LD_PRELOAD"))}
    with subprocess.Popen(command, env=kept | added, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return {
        "seconds": used.ru_utime + used.ru_stime,
        "system": used.ru_stime,
        "memory_mib": used.ru_maxrss / 2**10,  # KiB on Linux
    }


def describe(name: str, rounds: list[dict[str, dict]]) -> dict:
    """A row of the table."""
    ratios = [each[name]["seconds"] / each["glibc"]["seconds"] for each in rounds]
    return {
        "rival": name,
        "processor_seconds": f"{statistics.median(each[name]['seconds'] for each in rounds):.1f}",
        "system": f"{statistics.median(each[name]['system'] for each in rounds):.1f}",
        **describe_ratios(ratios),
        "memory_mib": f"{max(each[name]['memory_mib'] for each in rounds):.0f}",
        "rounds": len(rounds),
        **describe_here(),
    }


if __name__ == "__main__":
    main()
