"""Race builds of the compiled search: by several C compilers, for several kinds of processors.

python examples/benchmarks/compilers.py EXPORT... --compilers gcc clang-14 "python -m ziglang cc" \
    --csv examples/benchmarks/compilers.csv

Each compiler builds what setup.py says into a temporary folder. Each build has a process of its own
with one thread, and they take turns. A rate is sentences by the second of processor time, so that
other work on the machine counts less. Sources are random subwords. The models may be untrained:
translations then have as many subwords as they may.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
from races.report import append_rows, make_rows, print_table
from races.rounds import Result, Rival, race
from races.translate import Case

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exports", nargs="+", type=Path, metavar="EXPORT")
    parser.add_argument("--compilers", nargs="+", default=["cc"], help="the first is the measure")
    parser.add_argument("--kinds", nargs="+", default=[""], help="values of RESMLP_CPU_ISA")
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 1], help="sentences")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--subwords", type=int, default=20, help="of a source, with its end")
    parser.add_argument("--steps", type=int, default=32, help="of the decoder, at most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builds = {}
        for compiler in arguments.compilers:
            builds[compiler] = Path(folder) / str(len(builds))
            build(compiler, builds[compiler])
        for export, kind in product(arguments.exports, arguments.kinds):
            rivals = [
                Rival(
                    compiler,
                    prepare,
                    dict(
                        export=export,
                        built=built,
                        kind=kind,
                        subwords=arguments.subwords,
                        steps=arguments.steps,
                    ),
                )
                for compiler, built in builds.items()
            ]
            cases = [Case(*sizes) for sizes in product(arguments.batches, arguments.beams)]
            results = race(rivals, cases, arguments.rounds, threads=1)
            report(results, arguments, export, kind)


def build(compiler: str, out: Path) -> None:
    """Build the library into a folder; one that is a folder already is taken as it is."""
    if Path(compiler).is_dir():
        out.symlink_to(Path(compiler).absolute())
        return
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", out]
    temporary = ["--build-temp", f"{out}.o", "--force"]
    linking = {"LDSHARED": f"{compiler} -shared"}
    environ = os.environ | {"CC": compiler} | linking
    subprocess.run([*command, *temporary], cwd=_ROOT, env=environ, check=True)


def prepare(export: Path, built: Path, kind: str, subwords: int, steps: int):
    """A function that translates a case's batch with the library of a folder."""
    from resmlp_mt.engines.kernels import library
    from resmlp_mt.engines.options import SearchOptions
    from resmlp_mt.translating.translator import Translator

    if built.is_symlink() or built.exists():
        library._FOLDER = next(built.rglob("kernels*.so")).parent
    os.environ["RESMLP_CPU_ISA"] = kind
    model = Translator.from_pretrained(export, threads=1)
    symbols = len(model.codec.target_dictionary)
    random = np.random.default_rng(1)

    def run(case: Case) -> dict[str, float]:
        sentences, beam = case.batch_tokens, case.beam
        sources = random.integers(4, symbols, (64, subwords))
        sources[:, -1] = 2
        options = SearchOptions(beam, max_len_b=steps - 1)
        start = time.process_time()
        for first in range(0, 64 if sentences > 1 else 16, sentences):
            model.engine.search(list(sources[first : first + sentences]), options)
        seconds = time.process_time() - start
        return {"rate": (64 if sentences > 1 else 16) / seconds}

    return run


def report(results: list[Result], arguments: argparse.Namespace, export: Path, kind: str) -> None:
    """Print the rows, and append them to the CSV file."""
    sizes = {"model": export.name, "isa": kind, "subwords": arguments.subwords}
    rows = make_rows(results, arguments.rounds, 1, **sizes, steps=arguments.steps)
    for row in rows:
        row["batch"] = row.pop("batch_tokens")
        row["ms"] = round(1000 / float(row["rate"]), 2)
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
