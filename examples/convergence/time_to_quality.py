"""Seconds of training until each model first has the validation loss that one of them comes to.

    python examples/convergence/time_to_quality.py transformer_post=FOLDER resmlp_plus=FOLDER

FOLDER is where run.py trained a model: its train.log is read. The target is the lowest loss of the
first one, or --target. Only the seconds of updates count, without validation and without waiting.
Without any FOLDER the picture is drawn anew from --csv.

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

from resmlp_mt.data.reading import read_lines
from resmlp_mt.files.output import whole_file

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import describe_machine, describe_origin  # noqa: E402

# What the picture calls the models of plan.py; others keep their names.
_LABELS = {
    "resmlp_plus": "ours (resmlp_plus_tiny)",
    "transformer_pre": "Transformer, pre-norm",
    "transformer_post": "Transformer, post-norm",
}
_MARKERS = "osD^v"


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
    parser.add_argument("trainings", nargs="*", metavar="MODEL=FOLDER", type=read_training)
    parser.add_argument("--target", type=float, help="validation loss, base 2")
    parser.add_argument("--threads", default=os.environ.get("OMP_NUM_THREADS", "all"))
    parser.add_argument("--csv", type=Path, default=HERE / "time_to_quality.csv")
    parser.add_argument("--plot", type=Path, default=HERE / "time_to_quality.png")
    parser.add_argument("--title", default="", help="of the picture")
    arguments = parser.parse_args()
    if not arguments.trainings:
        if not arguments.csv.exists():
            parser.error(f"{arguments.csv} does not exist, and no FOLDER is named")
        races, target, threads = read_table(arguments.csv)
        draw(races, target, threads, arguments.title, arguments.plot)
        return 0
    races = {model: read_points(folder / "train.log") for model, folder in arguments.trainings}
    for model, folder in arguments.trainings:
        if not races[model]:
            print(f"{folder / 'train.log'}: no whole epoch of {model} in it", file=sys.stderr)
            return 2
    first = next(iter(races.values()))
    target = arguments.target or min(point.valid_nll_base2 for point in first)
    settings = {model: read_settings(folder) for model, folder in arguments.trainings}
    write_table(races, settings, target, arguments)
    draw(races, target, arguments.threads, arguments.title, arguments.plot)
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
    """Learning rate, dropout and seed of a training, from the command that run.py keeps."""
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


def read_table(path: Path) -> tuple[dict[str, list[Point]], float, str]:
    """Read the file of write_table: the epochs of each model, the target and the threads."""
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    races: dict[str, list[Point]] = {}
    for row in rows:
        point = Point(
            int(row["epoch"]),
            int(row["updates"]),
            float(row["seconds"]),
            float(row["valid_nll_base2"]),
        )
        races.setdefault(row["model"], []).append(point)
    return races, float(rows[0]["target"]), rows[0]["threads"]


def draw(
    races: dict[str, list[Point]], target: float, threads: str, title: str, path: Path
) -> None:
    """Validation loss against minutes: a line for each model, red for ours and gray for others."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    xlabel = "minutes of updates"
    if threads.isdigit():
        xlabel += ", one CPU thread" if threads == "1" else f", {threads} CPU threads"
    styles = choose_styles(list(races))
    with pyplot.rc_context({"font.size": 13, "axes.titlesize": 14}):
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        for place, (model, points) in enumerate(races.items()):
            curve = [(point.seconds / 60, point.valid_nll_base2) for point in points]
            axes.plot(
                *zip(*curve, strict=True), markersize=4, label=_LABELS.get(model, model),
                **styles[model],
            )  # fmt: skip
            if place == 0:  # in the legend below the model whose loss it is
                lowest = min(point.valid_nll_base2 for point in points) == target
                said = f"{'its lowest loss' if lowest else 'target'}, {target:.3f}"
                axes.axhline(target, color="black", linestyle="--", linewidth=1, label=said)
        axes.set(xlabel=xlabel, ylabel="validation loss, bits a subword", title=title)
        axes.set_xlim(left=0)
        axes.set_ylim(top=target + 2)  # the first epochs would press the rest together
        for model, points in races.items():
            if point := reach(points, target):
                mark_minutes(axes, point.seconds / 60, styles[model]["color"])
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right", framealpha=1)
        with whole_file(path) as new:
            figure.savefig(new, format="png", dpi=130)
        pyplot.close(figure)


def choose_styles(models: list[str]) -> dict[str, dict]:
    """A colour by whose a model is, and a marker of its own among those."""
    ours = [model for model in models if model.startswith("resmlp")]
    theirs = [model for model in models if model not in ours]
    return {
        model: {"color": color, "marker": _MARKERS[place % len(_MARKERS)]}
        for kind, color in ((ours, "tab:red"), (theirs, "0.35"))
        for place, model in enumerate(kind)
    }


def mark_minutes(axes, minutes: float, color: str) -> None:
    """A dotted line up to the target's minutes, which stand beside its foot."""
    axes.axvline(minutes, color=color, linestyle=":")
    left = minutes > axes.get_xlim()[1] * 0.8  # there is no room on the right
    axes.annotate(
        f"{minutes:.1f} min", (minutes, 0.04), xycoords=("data", "axes fraction"),
        xytext=(-6 if left else 6, 0), textcoords="offset points",
        ha="right" if left else "left", color=color, fontweight="bold",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
