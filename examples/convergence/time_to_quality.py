"""Seconds of training until each model first has the validation loss that one of them comes to.

    python examples/convergence/time_to_quality.py transformer_post=FOLDER resmlp_plus=FOLDER

FOLDER is where run.py trained a model: its train.log is read. The target is the lowest loss of the
first one, or --target. Only the seconds of updates count, without validation and without waiting.

It is a race where both trained side by side: at the same time, on the same cores, with the same
number of threads. `run.py`, started twice, does so.
"""

import argparse
import csv
import json
import os
import sys
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from run import HERE

from resmlp_mt.benchmark.report import describe_machine, describe_origin
from resmlp_mt.data.reading import read_lines
from resmlp_mt.files.output import whole_file


@dataclass(frozen=True)
class Point:
    """The end of an epoch: updates and seconds of them so far, and the validation loss then."""

    epoch: int
    updates: int
    seconds: float
    valid_nll_base2: float


def main() -> int:
    """Read the logs, write the table and the picture; status 2 where a log says nothing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trainings", nargs="+", metavar="MODEL=FOLDER", type=read_training)
    parser.add_argument("--target", type=float, help="validation loss, base 2")
    parser.add_argument("--threads", default=os.environ.get("OMP_NUM_THREADS", "all"))
    parser.add_argument("--csv", type=Path, default=HERE / "time_to_quality.csv")
    parser.add_argument("--plot", type=Path, default=HERE / "time_to_quality.png")
    arguments = parser.parse_args()
    races = {model: read_points(folder / "train.log") for model, folder in arguments.trainings}
    for model, folder in arguments.trainings:
        if not races[model]:
            print(f"{folder / 'train.log'}: no whole epoch of {model} in it", file=sys.stderr)
            return 2
    first = next(iter(races.values()))
    target = arguments.target or min(point.valid_nll_base2 for point in first)
    settings = {model: read_settings(folder) for model, folder in arguments.trainings}
    write_table(races, settings, target, arguments)
    draw(races, target, arguments.plot)
    for model, points in races.items():
        if point := reach(points, target):
            print(f"{model}: {point.seconds:,.0f} s, {point.updates:,} updates to {target:.3f}")
        else:
            print(f"{model}: not at {target:.3f} after {points[-1].updates:,} updates")
    return 0


def read_training(said: str) -> tuple[str, Path]:
    """MODEL=FOLDER as a pair."""
    model, equals, folder = said.partition("=")
    if not (model and equals and folder):
        raise argparse.ArgumentTypeError(f"{said}: not MODEL=FOLDER")
    return model, Path(folder)


def read_settings(folder: Path) -> dict[str, str]:
    """What a training was asked for, by the command that run.py keeps."""
    file = folder / "command"
    words = file.read_text(encoding="utf-8").split() if file.exists() else []
    flags = dict(zip(words, words[1:], strict=False))
    return {name: flags.get(f"--{name}", "") for name in ("lr", "dropout", "seed")}


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
    races: dict[str, list[Point]],
    settings: dict[str, dict[str, str]],
    target: float,
    arguments: argparse.Namespace,
) -> None:
    """A row for each epoch of each model; `reached` marks the first with the target."""
    described = {
        "target": f"{target:.3f}",
        **describe_origin(describe_machine()),
        "threads": arguments.threads,
    }
    rows = [
        {
            "model": model,
            **settings[model],
            **asdict(point),
            "reached": "yes" if point is reach(points, target) else "",
            **described,
        }
        for model, points in races.items()
        for point in points
    ]
    with whole_file(arguments.csv) as path, open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(races: dict[str, list[Point]], target: float, path: Path) -> None:
    """Validation loss against seconds, a line for each model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for model, points in races.items():
        curve = [(point.seconds / 60, point.valid_nll_base2) for point in points]
        (line,) = axes.plot(*zip(*curve, strict=True), marker="o", markersize=3, label=model)
        if point := reach(points, target):
            axes.axvline(point.seconds / 60, color=line.get_color(), linestyle=":")
    axes.axhline(target, color="gray", linestyle="--", label=f"target, {target:.3f}")
    axes.set(xlabel="minutes of training", ylabel="validation loss (base 2)")
    axes.set_ylim(top=target + 2)  # the first epochs would press the rest together
    axes.grid(alpha=0.3)
    axes.legend()
    with whole_file(path) as new:
        figure.savefig(new, format="png", dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
