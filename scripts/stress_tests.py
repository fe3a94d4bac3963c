"""Run the tests again and again beside a load, and say which failed in which run.

    python scripts/stress_tests.py 20 --report stress.md
    python scripts/stress_tests.py 5 tests/serving -k hangup

Inside .venv, and outside CI: it takes hours. The load is of stress-ng (Debian: stress-ng), and as
long as the tests: each core computes, and one process each writes files and fills memory. What is
not known here is pytest's. Status 1 where a test failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[1] / "examples/benchmarks"))

from races.report import describe_origin, describe_processor  # noqa: E402

LOAD = "--cpu 0 --hdd 1 --hdd-bytes 128m --vm 1 --vm-bytes 10%"


def main() -> int:
    """Repeat, and write the report anew after each run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=int, help="how often")
    parser.add_argument("--load", default=LOAD, help="flags of stress-ng; default: %(default)s")
    parser.add_argument("--workers", type=int, default=3, help="of pytest; default: %(default)s")
    parser.add_argument("--report", type=Path, default=Path("stress.md"))
    arguments, tests = parser.parse_known_args()
    runs = []
    for number in range(1, arguments.runs + 1):
        began = time.monotonic()
        count, failed = run_beside_load(arguments.load, arguments.workers, tests)
        runs.append((count, failed, time.monotonic() - began))
        print(f"run {number}: {count} tests, {len(failed)} failed: {' '.join(failed)}", flush=True)
        arguments.report.write_text(write_report(runs, arguments.load, tests), encoding="utf-8")
    return int(any(failed for _, failed, _ in runs))


def run_beside_load(load: str, workers: int, tests: list[str]) -> tuple[int, list[str]]:
    """How many tests ran, and the names of those that failed; pytest's own failure is one too."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.xml")
        stress = ["stress-ng", *load.split(), "--temp-path", folder, "--quiet"]
        pytest = [sys.executable, "-m", "pytest", "--numprocesses", str(workers)]
        pytest += ["--dist", "worksteal", f"--junitxml={result}", *tests]
        with subprocess.Popen(stress) as beside:
            try:
                environment = {"OMP_NUM_THREADS": "1", **os.environ}
                status = subprocess.run(pytest, env=environment).returncode
            finally:
                beside.terminate()
        cases = list(ElementTree.parse(result).iter("testcase")) if result.exists() else []
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return len(cases), failed or [f"pytest ended with status {status}"] * bool(status)


def write_report(runs: list[tuple[int, list[str], float]], load: str, tests: list[str]) -> str:
    """A page with a line for the whole, and one for each test that failed."""
    origin = describe_origin(describe_processor(os.environ.get("OMP_NUM_THREADS", "1")))
    often = Counter(name for _, failed, _ in runs for name in failed)
    lines = [
        f"# {len(runs)} runs of the tests beside `stress-ng {load}`",
        "",
        f"{', '.join(map(str, origin.values()))}; {' '.join(tests) or 'all tests'}; "
        f"{min(count for count, *_ in runs):,} tests a run; "
        f"{min(s for *_, s in runs):.0f} to {max(s for *_, s in runs):.0f} seconds a run; "
        f"{sum(not failed for _, failed, _ in runs)} of {len(runs)} runs without a failure.",
        "",
    ]
    for name, count in often.most_common():
        numbers = [str(i) for i, (_, failed, _) in enumerate(runs, 1) if name in failed]
        lines.append(f"- `{name}` failed {count} times: in run {', '.join(numbers)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
