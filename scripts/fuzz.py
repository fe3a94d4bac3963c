"""Mutate files at random, and see that what reads them answers: a clear error, or a result.

An attempt is shut in a process of its own. What crashes, hangs, runs code, takes too much memory or
raises something else than a `UserError` is a finding: its files are kept, and the status is 1.

    python scripts/fuzz.py checkpoint --count 1000 --seed 1
    python scripts/fuzz.py all --count 25
    python scripts/fuzz.py export --first 317 --count 1      # once more number 317
"""

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive a fork

from hostile import kinds  # noqa: E402
from hostile.contain import attempt  # noqa: E402
from tqdm import tqdm  # noqa: E402

_VERDICTS = ("accepted", "refused", "exception", "crash", "hang", "memory", "code")


def main() -> int:
    """Fuzz the kinds, print a row for each, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="+", choices=(*kinds.NAMES, "all"), metavar="KIND",
                        help=f"all, or of {', '.join(kinds.NAMES)}")  # fmt: skip
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="attempts of a kind")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first")
    parser.add_argument("--findings", type=Path, default=Path("fuzzed"), metavar="DIR")
    arguments = parser.parse_args()
    logging.disable()
    names = kinds.NAMES if "all" in arguments.kinds else arguments.kinds
    print("\t".join(("kind", "seed", "count", *_VERDICTS, "seconds")), flush=True)
    found = 0
    for name in names:
        started = time.monotonic()
        numbers = range(arguments.first, arguments.first + arguments.count)
        counts = fuzz(name, arguments.seed, numbers, arguments.findings)
        found += sum(counts[verdict] for verdict in _VERDICTS[2:])
        row = (name, arguments.seed, len(numbers), *(counts[verdict] for verdict in _VERDICTS))
        print(*row, round(time.monotonic() - started), sep="\t", flush=True)
    if found:
        print(f"{found} findings; the files are in {arguments.findings}/", file=sys.stderr)
    return int(found > 0)


def fuzz(name: str, seed: int, numbers: range, findings: Path) -> Counter[str]:
    """Make the attempts of these numbers, and count how they ended.

    Args:
        name: Of the kind.
        seed: With kind and number it makes an attempt what it is.
        numbers: The attempts.
        findings: Where the files of what is wrong are kept, in KIND-SEED-NUMBER.
    """
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        kind = kinds.build(name, Path(root))
        for use in kind.whole():
            outcome = attempt(use, Path(root))
            assert outcome.verdict == "accepted", outcome
        for number in tqdm(numbers, desc=name, unit="", leave=False):
            folder = Path(root) / "attempts" / "at"
            folder.mkdir(parents=True)
            use = kind.make(Random(f"{name} {seed} {number}"), folder)
            outcome = attempt(use, folder)
            if len(os.listdir(folder.parent)) > 1:
                outcome = outcome._replace(verdict="code")
            counts[outcome.verdict] += 1
            if not outcome.fine:
                kept = findings / f"{name}-{seed}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept)
                (kept / "finding.txt").write_text(f"{outcome.verdict}\n{outcome.detail}\n")
            shutil.rmtree(folder.parent)
    return counts


if __name__ == "__main__":
    sys.exit(main())
