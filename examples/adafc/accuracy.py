"""Draw top-1 on ImageNet over parameters, as the paper's figure 4 does.

    python examples/adafc/accuracy.py
    python examples/adafc/accuracy.py --csv mine.csv --out mine.png    # with rows of your own

A row of the CSV file is a model: family, model, parameters and top1. Models of a family share a
line.
"""

import argparse
import csv
from pathlib import Path

import matplotlib

from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

HERE = Path(__file__).parent
_SIZES = (10, 20, 50, 100)


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path, default=HERE / "published.csv")
    parser.add_argument("--out", type=Path, default=HERE / "accuracy.png")
    arguments = parser.parse_args()
    families = {}
    with open(arguments.csv, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            point = int(row["parameters"]) / 1e6, float(row["top1"]), row["model"]
            families.setdefault(row["family"], []).append(point)
    with whole_file(arguments.out) as path:
        draw(families, path)


def draw(families: dict[str, list[tuple[float, float, str]]], path: Path) -> None:
    """A line a family; models that belong to none ("others") are points."""
    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for family, points in families.items():
        sizes, top1, names = zip(*sorted(points), strict=True)
        axis.plot(sizes, top1, "x" if family == "others" else "o-", label=family)
        for point in zip(sizes, top1, names, strict=True):
            axis.annotate(point[2], point[:2], (4, -9), textcoords="offset points", fontsize=7)
    axis.set(xscale="log", xlabel="parameters, millions", ylabel="top-1 on ImageNet, %")
    axis.set_xticks(_SIZES, map(str, _SIZES))
    axis.minorticks_off()
    axis.margins(0.12)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=120, format="png")


if __name__ == "__main__":
    main()
