"""Seconds of training until a model first reaches a validation loss, side by side.

    python examples/convergence/time_to_quality.py --data DIR --stage multi30k-128

Every model of a stage of plan.py is trained with the settings that results.csv says are its best,
from the beginning. The models take turns on the same cores: an epoch of one, an epoch of the next,
until each has a validation loss of --target or less, or has made all updates of the stage. Without
--target it is the final loss of the better Transformer, from results.csv: the mean over the seeds
of its best settings. Only the seconds of a model's own updates count, without validation and
without waiting.

It may be stopped at any time, by a kill too. The same command goes on from the last epoch. The
table and the picture are written anew after every epoch.
"""

import argparse
import csv
import datetime
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TextIO

from plan import STAGES, Run, Stage, list_flags, list_runs
from run import HERE, call_training, read_losses, read_progress, take

from resmlp_mt.benchmark.report import describe_commit, describe_machine
from resmlp_mt.data.text import read_lines
from resmlp_mt.files.output import whole_file


@dataclass(frozen=True)
class Point:
    """The end of an epoch: updates and seconds of them so far, and the validation loss then."""

    epoch: int
    updates: int
    seconds: float
    valid_nll_base2: float


def main() -> int:
    """Train in turns; status 2 where the settings or the target are not known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data-bin"), help="default: %(default)s")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("checkpoints/time_to_quality"),
        help="default: %(default)s",
    )
    parser.add_argument("--stage", default=STAGES[0].name, choices=[s.name for s in STAGES])
    parser.add_argument("--models", nargs="+", help="default: all of the stage")
    parser.add_argument("--target", type=float, help="validation loss, base 2")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--csv", type=Path, default=HERE / "time_to_quality.csv")
    parser.add_argument("--plot", type=Path, default=HERE / "time_to_quality.png")
    arguments = parser.parse_args()
    stage = next(stage for stage in STAGES if stage.name == arguments.stage)
    losses = read_losses(stage, arguments.results)
    target = arguments.target or find_target(stage, losses)
    runs = [
        replace(run, seed=arguments.seed)
        for model in arguments.models or stage.models
        if (run := find_best(stage, model, losses))
    ]
    if target is None or len(runs) < len(arguments.models or stage.models):
        print(
            f"{arguments.results} has not all settings of {stage.name} yet, or no final loss of a "
            "Transformer; let run.py go on, or give --target and --models",
            file=sys.stderr,
        )
        return 2
    lock = take(arguments.work)
    if lock is None:
        print(f"{arguments.work}: another race is at work there", file=sys.stderr)
        return 2
    with lock:
        take_turns(stage, runs, target, arguments, lock)
    return 0


def find_best(stage: Stage, model: str, losses: dict[Run, float]) -> Run | None:
    """A final run of a model with its best settings, as far as they are known."""
    finals = [run for run in list_finals(stage, losses) if run.model == model and run.known]
    return min(finals, key=lambda run: losses.get(run, float("inf")), default=None)


def find_target(stage: Stage, losses: dict[Run, float]) -> float | None:
    """The lowest final loss of a Transformer: of its best settings, the mean over the seeds."""
    means = []
    for model in stage.models:
        best = find_best(stage, model, losses)
        if model.startswith("transformer") and best in losses:
            same = [replace(best, seed=seed) for seed in stage.seeds]
            means.append(statistics.mean(losses[run] for run in same if run in losses))
    return min(means, default=None)


def list_finals(stage: Stage, losses: dict[Run, float]) -> list[Run]:
    """The runs that are compared, with the first seed."""
    return [
        run
        for run in list_runs(stage, losses)
        if run.purpose == "final" and run.seed == stage.seeds[0]
    ]


def take_turns(
    stage: Stage, runs: list[Run], target: float, arguments: argparse.Namespace, lock: TextIO
) -> None:
    """An epoch of each run in turn, until none has anything left to do."""
    while True:
        points = {run: read_points(arguments.work / run.model / "train.log") for run in runs}
        waiting = [run for run in runs if not is_over(points[run], target, run.updates)]
        if any(points.values()):
            write_table(points, target, arguments)
            draw(points, target, arguments.plot)
        if not waiting:
            return
        # Whoever is behind by epochs goes on first.
        run = min(waiting, key=lambda run: len(points[run]))
        folder = arguments.work / run.model
        folder.mkdir(exist_ok=True)
        flags = [*list_flags(stage, run), "--max-epoch", str(read_progress(folder).epochs + 1)]
        status, said = call_training(folder, arguments.data / stage.data, flags, lock)
        if status or read_points(folder / "train.log") == points[run]:
            sys.exit(f"{run.model} ended with status {status}; {folder}/output ends with\n{said}")


def is_over(points: list[Point], target: float, updates: int) -> bool:
    """Whether a run has reached the target, or made all of its updates."""
    return bool(points) and (reach(points, target) is not None or points[-1].updates >= updates)


def reach(points: list[Point], target: float) -> Point | None:
    """The first epoch with the target, or less."""
    return next((point for point in points if point.valid_nll_base2 <= target), None)


def read_points(log: Path) -> list[Point]:
    """The epochs in a log of fairseq, which counts the seconds of updates for each epoch.

    An epoch that was trained again, after a kill at its end, counts once.
    """
    seconds: dict[int, float] = {}
    valid: dict[int, tuple[int, float]] = {}
    for line in read_lines(log) if log.exists() else ():
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:  # other lines of the log
            continue
        if "train_train_wall" in entry:
            seconds[int(entry["epoch"])] = float(entry["train_train_wall"])
        elif "valid_nll_loss" in entry:
            updates, loss = int(entry["valid_num_updates"]), float(entry["valid_nll_loss"])
            valid[int(entry["epoch"])] = updates, loss
    epochs = sorted(seconds.keys() & valid.keys())
    totals = accumulate(seconds[epoch] for epoch in epochs)
    return [
        Point(epoch, valid[epoch][0], total, valid[epoch][1])
        for epoch, total in zip(epochs, totals, strict=True)
    ]


def write_table(
    points: dict[Run, list[Point]], target: float, arguments: argparse.Namespace
) -> None:
    """A row for each epoch of each model; `reached` marks the first with the target."""
    described = {
        "target": f"{target:.3f}",
        "commit": describe_commit(),
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    rows = [
        {
            "stage": run.stage,
            "model": run.model,
            "lr": run.lr,
            "dropout": run.dropout,
            "seed": run.seed,
            **asdict(point),
            "reached": "yes" if point is reach(found, target) else "",
            **described,
        }
        for run, found in points.items()
        for point in found
    ]
    with whole_file(arguments.csv) as path, open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(points: dict[Run, list[Point]], target: float, path: Path) -> None:
    """Validation loss against seconds, a line for each model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for run, found in points.items():
        curve = [(point.seconds / 60, point.valid_nll_base2) for point in found]
        if curve:
            axes.plot(*zip(*curve, strict=True), marker="o", markersize=3, label=run.model)
    axes.axhline(target, color="gray", linestyle="--", label=f"target, {target:.3f}")
    axes.set(xlabel="minutes of training", ylabel="validation loss (base 2)")
    axes.grid(alpha=0.3)
    axes.legend()
    with whole_file(path) as new:
        figure.savefig(new, format="png", dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
