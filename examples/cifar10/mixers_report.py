"""Draw the curves of mixers.py, and make the table of all mixers.

    python examples/cifar10/mixers_report.py --measure    # the costs too, in turns, ten minutes
    python examples/cifar10/mixers_report.py

mixers_cost.csv is what `race.py images` of examples/benchmarks says of the mixers,
mixers_step_time.csv what step_time.py --mixers says. Both are measured anew with --measure. The
table is mixers_table.csv. The pictures are mixers.png and shuffled.png.
"""

import argparse
import csv
import statistics
import subprocess
import sys
from pathlib import Path

import matplotlib
from mixers import IMAGES, MODELS, SHUFFLED

from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

HERE = Path(__file__).parent


def main() -> int:
    """Write the table and both pictures; status 1 where a measurement failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--curves", type=Path, default=HERE / "mixers.csv")
    parser.add_argument("--measure", action="store_true", help="the costs, before all else")
    parser.add_argument("--folder", type=Path, default=HERE, help="of all other files")
    arguments = parser.parse_args()
    folder = arguments.folder
    if arguments.measure and (status := measure(folder)):
        return status
    curves = read_curves(arguments.curves)
    costs, times = (read(folder / f"mixers_{name}.csv") for name in ("cost", "step_time"))
    rows = make_table(curves, costs, times)
    with (
        whole_file(folder / "mixers_table.csv") as path,
        open(path, "w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with whole_file(folder / "mixers.png") as path:
        draw_table(rows, path)
    with whole_file(folder / "shuffled.png") as path:
        draw_curves(curves, path)
    return 0


def list_archs() -> dict[str, str]:
    """The mixers as `race.py images --arch` takes them; the ResNet is none."""
    return {
        name: flags.removeprefix("--arch ") for name, flags in MODELS.items() if name != "resnet"
    }


def measure(folder: Path) -> int:
    """Write both files of costs; returns a status, and leaves a file whose measurement failed."""
    new = folder / "mixers_cost.new"
    new.unlink(missing_ok=True)
    race = [sys.executable, HERE.parent / "benchmarks" / "race.py", "images"]
    race += ["--image-size", "32", "--num-classes", "10"]
    race += ["--threads", "1", "--rounds", "3", "--images", "128", "--csv", new]
    race += ["--arch", *list_archs().values()]
    times = [sys.executable, HERE / "step_time.py", "--mixers", "--bf16", "--rounds", "15"]
    times += ["--out", folder / "mixers_step_time.csv"]
    if status := subprocess.run(race).returncode:
        return status
    new.replace(folder / "mixers_cost.csv")
    return subprocess.run(times).returncode


def read(path: Path) -> list[dict]:
    """The rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def read_curves(path: Path) -> dict[tuple[str, str], dict[str, list[tuple[int, float]]]]:
    """The curves of a model on images, (update, top-1) by seed."""
    curves = {}
    for row in read(path):
        seeds = curves.setdefault((row["model"], row["images"]), {})
        seeds.setdefault(row["seed"], []).append((int(row["updates"]), float(row["top1"])))
    return curves


def make_table(curves: dict, costs: list[dict], times: list[dict]) -> list[dict]:
    """A row a mixer that was trained: what it costs, and its top-1 as a mean over seeds."""
    archs, rows = list_archs(), []
    seconds = {row["model"]: float(row["ratio"]) for row in times}
    fastest = min(seconds[name] for name in archs if (name, "original") in curves)
    for name, arch in archs.items():
        seeds = list(curves.get((name, "original"), {}).values())
        if not seeds:
            continue
        alone, batch = (
            next(row for row in costs if (row["arch"], row["batch"]) == (arch, size))
            for size in ("1", "32")
        )
        updates = seeds[0][-1][0]
        in_time = updates * fastest / seconds[name]
        rows.append(
            {
                "model": name,
                "parameters": alone["parameters"],
                "multiply_adds": alone["multiply_adds"],
                "rate_1": alone["rate"],
                "rate_32": batch["rate"],
                "seeds": len(seeds),
                "updates": updates,
                "top1": f"{statistics.mean(curve[-1][1] for curve in seeds):.2f}",
                "updates_in_time": round(in_time),
                "top1_in_time": f"{statistics.mean(interpolate(c, in_time) for c in seeds):.2f}",
            }
        )
    return rows


def interpolate(curve: list[tuple[int, float]], update: float) -> float:
    """The top-1 at an update between two validations, or after the first."""
    for (before, low), (after, high) in zip(curve, curve[1:], strict=False):
        if before <= update <= after:
            return low + (high - low) * (update - before) / (after - before)
    raise ValueError(f"update {update:.0f} lies outside of the curve")


def draw_table(rows: list[dict], path: Path) -> None:
    """Top-1 over parameters, each mixer by its name."""
    figure, axis = pyplot.subplots(figsize=(7, 5), layout="constrained")
    sizes = [int(row["parameters"]) / 1000 for row in rows]
    for name, label in (("top1", "same updates"), ("top1_in_time", "same time")):
        axis.plot(sizes, [float(row[name]) for row in rows], "o", label=label)
    # On both sides by turns, so that the names of neighbours do not meet.
    for i, (size, row) in enumerate(
        sorted(zip(sizes, rows, strict=True), key=lambda pair: pair[0])
    ):
        high = max(float(row["top1"]), float(row["top1_in_time"]))
        side = dict(xytext=(5, 3), ha="left") if i % 2 else dict(xytext=(-5, -9), ha="right")
        axis.annotate(row["model"], (size, high), textcoords="offset points", fontsize=8, **side)
    axis.set(xlabel="parameters, thousands", ylabel="top-1, %")
    axis.margins(0.15)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=120, format="png")


def draw_curves(curves: dict, path: Path) -> None:
    """A panel a model of the study of shuffles, a line for each kind of images."""
    figure, panels = pyplot.subplots(
        1, len(SHUFFLED), figsize=(2.8 * len(SHUFFLED), 3.2), sharey=True, layout="constrained"
    )
    for model, panel in zip(SHUFFLED, panels, strict=True):
        for images in IMAGES:
            for curve in curves.get((model, images), {}).values():
                colour = f"C{IMAGES.index(images)}"
                style = dict(color=colour, label=images, marker="o", markersize=3)
                panel.plot(*zip(*curve, strict=True), **style)
        panel.set(title=model, xlabel="updates")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("top-1, %")
    panels[0].legend(*_label_once(panels[0]))
    figure.savefig(path, dpi=120, format="png")


def _label_once(panel) -> tuple[list, list]:
    handles, labels = panel.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    return list(known.values()), list(known)


if __name__ == "__main__":
    sys.exit(main())
