"""Train and score the variants of catalogue.py, one row a run. Run it again to go on.

    bash examples/multi30k/prepare.sh
    python examples/ablation/run.py --jobs 2
    python examples/ablation/run.py --base plus --factor gate --seeds 1 2

How they meet sentences longer than those of the training, with the data of split_lengths.py:

    python examples/ablation/run.py --data data-bin/multi30k-short --subset test --results FILE

A run trains for a few minutes on one CPU thread and is scored on the validation set: the test set
stays for the comparison of the models that were chosen. Interrupted runs start anew.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from catalogue import BASES, RUNS
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows, describe_machine, describe_origin  # noqa: E402

HERE = Path(__file__).parent
COLUMNS = (
    "base,factor,value,seed,data,subset,parameters,updates,max_tokens,valid_nll_base2,bleu,"
    "brevity_penalty,train_seconds,flags,commit,date,machine"
).split(",")
# What makes a run that run.
KEY = "base,factor,value,seed,data,subset,updates,max_tokens,flags".split(",")

# As in examples/multi30k but for smaller batches, bf16, and a third of the dropout, since a short
# run does not overfit.
RECIPE = """--user-dir {plugin} --share-all-embeddings
    --max-source-positions 128 --max-target-positions 128 --dropout 0.1
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --lr-scheduler inverse_sqrt --warmup-updates {warmup}
    --max-tokens {tokens} --max-update {updates} --seed {seed} --bf16 --num-workers 0
    --distributed-world-size 1
    --validate-interval 1000 --no-epoch-checkpoints --no-save-optimizer-state
    --save-dir {folder} --log-format json --log-interval 100"""

ADAM = "--optimizer adam --adam-betas (0.9,0.98) --lr 5e-3"


def main() -> int:
    """Run what has no row yet; status 1 where a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data-bin/multi30k", help="default: %(default)s")
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--base", nargs="+", choices=list(BASES), default=list(BASES))
    parser.add_argument("--factor", nargs="+", help="only these; default: all")
    parser.add_argument("--value", nargs="+", help="only these; default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument(
        "--subset", default="valid", help="what is translated and scored; default: %(default)s"
    )
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--max-tokens", type=int, default=1024)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    arguments = parser.parse_args()
    if arguments.jobs < 1 or arguments.updates < 4:
        parser.error("--jobs must be at least 1, and --updates 4, for a quarter of them warms up")

    runs = [run for seed in arguments.seeds for run in _list_runs(arguments, seed)]
    if not runs:
        parser.error("no run of catalogue.py is called so")
    if arguments.results.exists():
        with open(arguments.results, newline="", encoding="utf-8") as stream:
            done = {_key(row) for row in csv.DictReader(stream)}
        runs = [run for run in runs if _key(run) not in done]
    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool, tqdm(total=len(runs), unit=" runs") as bar:
        try:
            futures = {pool.submit(_run, run, arguments.data): run for run in runs}
            for future in as_completed(futures):
                if error := future.exception():
                    failed += 1
                    bar.write(f"{' '.join(_key(futures[future]))} failed: {error}", sys.stderr)
                else:
                    append_rows(arguments.results, [future.result()], COLUMNS)
                bar.update()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return 1 if failed else 0


def _list_runs(arguments: argparse.Namespace, seed: int) -> list[dict]:
    return [
        {
            "base": base,
            "factor": factor,
            "value": value,
            "seed": seed,
            "updates": arguments.updates,
            "max_tokens": arguments.max_tokens,
            "flags": " ".join(flags.split()),
            "data": Path(arguments.data).name,
            "subset": arguments.subset,
        }
        for base in arguments.base
        for factor, values in RUNS[base].items()
        for value, flags in values.items()
        if arguments.factor is None or factor in arguments.factor
        if arguments.value is None or value in arguments.value
    ]


def _key(row: dict) -> tuple:
    return tuple(str(row[name]) for name in KEY)


def _run(run: dict, data: str) -> dict:
    """Train, translate, and collect the row."""
    with tempfile.TemporaryDirectory(prefix="ablation-") as folder:
        log, translations = _train_and_translate(run, data, folder)
    return {
        **{name: run[name] for name in COLUMNS if name in run},
        "parameters": int(re.search(r"model params: ([\d,]+)", log)[1].replace(",", "")),
        "valid_nll_base2": re.findall(r'"valid_nll_loss": "([\d.]+)"', log)[-1],
        "bleu": re.search(r"BLEU\S* = ([\d.]+)", translations)[1],
        "brevity_penalty": re.search(r"BP = ([\d.]+)", translations)[1],
        "train_seconds": round(float(re.search(r"done training in ([\d.]+) seconds", log)[1])),
        **describe_origin(describe_machine()),
    }


def list_flags(run: dict, folder: str) -> list[str]:
    """The flags of fairseq-train, without the data."""
    recipe = RECIPE.format(
        plugin=HERE / "variants",
        warmup=run["updates"] // 4,
        tokens=run["max_tokens"],
        updates=run["updates"],
        seed=run["seed"],
        folder=folder,
    )
    optimiser = "" if "--optimizer" in run["flags"] else ADAM
    return " ".join([BASES[run["base"]], recipe, optimiser, run["flags"]]).split()


def _train_and_translate(run: dict, data: str, folder: str) -> tuple[str, str]:
    """The log of the training, and the output of the translation."""
    log = _command("fairseq-train", data, *list_flags(run, folder))
    translations = _command(
        "fairseq-generate", data, "--user-dir", HERE / "variants",
        "--path", f"{folder}/checkpoint_last.pt", "--gen-subset", run["subset"], "--beam", 5,
        "--max-tokens", 12000, "--remove-bpe", "sentencepiece", "--scoring", "sacrebleu", "--quiet",
    )  # fmt: skip
    return log, translations


def _command(program: str, *arguments) -> str:
    result = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if result.returncode:
        raise RuntimeError(f"{program} ended with {result.returncode}:\n{result.stdout[-3000:]}")
    return result.stdout


if __name__ == "__main__":
    sys.exit(main())
