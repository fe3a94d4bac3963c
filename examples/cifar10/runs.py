"""Trainings of a study: each a fork with a log, and rows in a CSV file once it is done."""

import csv
import multiprocessing
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import fairseq_cli.train  # noqa: F401  (once for all runs, which are forks)
import torch

import resmlp_mt.plugin  # noqa: F401  (likewise)
from resmlp_mt.analysis.training_log import read_log
from resmlp_mt.cli.passthrough import run_program
from resmlp_mt.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import describe_origin, describe_processor  # noqa: E402

_STOPPED = "SIGTERM: saving and stopping"
_forks = multiprocessing.get_context("fork")


@dataclass
class Run:
    """The results of a training.

    Attributes:
        parameters: How many its model has.
        top1: Accuracy on the validation images in percent, by update.
    """

    parameters: int
    top1: dict[int, float]


def train(words: Iterable, folder: Path) -> Run | None:
    """Train on one thread and at most one GPU, or go on where the training was stopped.

    Args:
        words: Of `resmlp-mt train`. They name `folder`/train.log as the log, in JSON.
        folder: Where the training leaves its files.

    Returns:
        The results, or None if it failed or was stopped, which is printed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "output"
    before = len(output.read_text(errors="replace")) if output.exists() else 0
    # fairseq would take all the GPUs that it sees.
    words = [*map(str, words), "--distributed-world-size", "1"]
    process = _forks.Process(target=_train, args=(words, output))
    process.start()
    process.join()
    said = output.read_text(errors="replace")
    if process.exitcode:
        said = f"status {process.exitcode}; {output} ends with\n{said[-3000:]}"
        print(said, file=sys.stderr)
        return None
    if _STOPPED in said[before:]:  # which ends with status 0 too
        print("stopped by SIGTERM; the same command goes on", file=sys.stderr)
        return None
    parameters = re.findall(r"shared model params: ([\d,]+)", said)[-1].replace(",", "")
    # Validated again after a stop, an update has its last value.
    return Run(int(parameters), dict(read_log(folder / "train.log", "top1")[1]))


def _train(words: list[str], output: Path) -> None:
    with open(output, "a") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    torch.set_num_threads(1)
    try:
        run_program("train", words)
    except UserError as error:
        sys.exit(f"{error}")


def describe(found: Run) -> dict:
    """Columns of every row of a run: the model's parameters, and where it was measured."""
    return {"parameters": found.parameters, **describe_origin(describe_processor(1))}


def read(path: Path) -> list[dict]:
    """The rows of a CSV file; none where it is not there."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def find_done(results: Path, columns: list[str]) -> set[tuple[str, ...]]:
    """The values of these columns that there are rows of."""
    return {tuple(row[column] for column in columns) for row in read(results)}
