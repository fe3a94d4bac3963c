"""Draw what a subword costs against the length of sentences, a panel for each race and size.

python examples/benchmarks/plot.py examples/benchmarks/train.csv --out examples/benchmarks/train.png
python examples/benchmarks/plot.py examples/benchmarks/{train,length}.csv --sizes tiny "tiny int8" \
    --out examples/benchmarks/length.png

The races are those of `race.py train` and of length.py. Numbers in a panel of training
are ratios to its first rival.
"""

import argparse
import csv
import sys
from itertools import cycle
from pathlib import Path

from matplotlib import pyplot

# Color, and how many points below its dots a rival's ratios stand.
_STYLES = (
    ("black", 0), ("tab:blue", -11), ("tab:red", 6),
    ("tab:orange", -11), ("tab:green", 6), ("tab:purple", -11),
)  # fmt: skip
_SEARCHED = {"CTranslate2": _STYLES[0], "exported": _STYLES[2]}
_LINES = {"1": "--"}  # by the sentences at once


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", type=Path, nargs="+")
    parser.add_argument("--flags", default="", help="draw the trainings that have these")
    parser.add_argument("--sizes", nargs="+", help="draw these alone")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    panels: dict[str, list[dict]] = {}
    for path in arguments.csv:
        with open(path, newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                wanted = arguments.sizes is None or row["size"] in arguments.sizes
                if wanted and row.get("flags", "") == arguments.flags:
                    race = "decoding" if "step_ms" in row else "training"
                    panels.setdefault(f"{race}, {row['size']}", []).append(row)
    if not panels:
        parser.error("no row has these sizes and flags")
    draw(panels, arguments.out)


def draw(races: dict[str, list[dict]], path: Path) -> None:
    """Milliseconds a target subword by length; `races` are the rows of a panel by its title."""
    figure, panels = pyplot.subplots(
        1, len(races), figsize=(4.2 * len(races), 3.8), squeeze=False, layout="constrained"
    )
    for (title, rows), panel in zip(races.items(), panels[0], strict=True):
        styles = dict(
            zip(dict.fromkeys(row["rival"] for row in rows), cycle(_STYLES), strict=False)
        )
        for rival, batch in dict.fromkeys((row["rival"], row.get("batch")) for row in rows):
            own = {  # of a length that was raced twice, the last
                int(row["length"]): (_cost(row), row["ratio"])
                for row in rows
                if (row["rival"], row.get("batch")) == (rival, batch)
            }
            points = sorted((length, *figures) for length, figures in own.items())
            lengths, costs, ratios = zip(*points, strict=True)
            color, below = _SEARCHED.get(rival, styles[rival])
            label = rival if batch is None else f"{rival}, {batch} at once"
            panel.plot(lengths, costs, f"o{_LINES.get(batch, '-')}", color=color, label=label)
            if batch is None and float(ratios[0]) != 1:
                for x, y, ratio in points:
                    panel.annotate(f"{ratio}×", (x, y), (0, below), textcoords="offset points",
                                   fontsize=7, color=color, ha="center")  # fmt: skip
        panel.set(xscale="log", title=title, xlabel="length of a sentence")
        panel.set_ylim(bottom=0)
        panel.set_xticks(lengths, lengths)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7, handlelength=3)
    panels[0, 0].set_ylabel("ms a target subword")
    figure.savefig(path, dpi=110, format="png")


def _cost(row: dict) -> float:
    """Of a full update, or of a step of the search for one of its sentences."""
    if "step_ms" in row:
        return float(row["step_ms"]) / int(row["batch"])
    return 1000 / float(row["rate"])


if __name__ == "__main__":
    sys.exit(main())
