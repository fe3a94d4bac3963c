"""Draw what full updates cost against the length of the sentences, a panel for each size.

python examples/benchmarks/plot.py examples/benchmarks/train.csv --out examples/benchmarks/train.png
"""

import argparse
import csv
import sys
from pathlib import Path

from matplotlib import pyplot

# Color, and how many points below its dots a rival's ratios stand.
_STYLES = (
    ("black", 0), ("tab:blue", -11), ("tab:red", 6),
    ("tab:orange", -11), ("tab:green", 6), ("tab:purple", -11),
)  # fmt: skip


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", type=Path, help="of 'resmlp-mt benchmark train'")
    parser.add_argument("--flags", default="", help="draw the rows that have these")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    with open(arguments.csv, newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["flags"] == arguments.flags]
    draw(rows, arguments.out)


def draw(rows: list[dict], path: Path) -> None:
    """Milliseconds a target token, by length, with the ratio to the first rival."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    figure, panels = pyplot.subplots(
        1, len(sizes), figsize=(4.2 * len(sizes), 3.8), squeeze=False, layout="constrained"
    )
    for size, panel in zip(sizes, panels[0], strict=True):
        own = [row for row in rows if row["size"] == size]
        for rival, (color, below) in zip(
            dict.fromkeys(row["rival"] for row in own), _STYLES, strict=False
        ):
            found = {  # of one that was raced twice, the last
                int(row["length"]): (1000 / float(row["rate"]), row["ratio"])
                for row in own
                if row["rival"] == rival
            }
            points = sorted((length, *figures) for length, figures in found.items())
            lengths, costs, ratios = zip(*points, strict=True)
            panel.plot(lengths, costs, "o-", color=color, label=rival)
            if float(ratios[0]) != 1:
                for x, y, ratio in points:
                    panel.annotate(f"{ratio}×", (x, y), (0, below), textcoords="offset points",
                                   fontsize=7, color=color, ha="center")  # fmt: skip
        panel.set(xscale="log", title=size, xlabel="length of a sentence")
        panel.set_ylim(bottom=0)
        panel.set_xticks(lengths, lengths)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    panels[0, 0].set_ylabel("ms a target token, full update")
    figure.savefig(path, dpi=110, format="png")


if __name__ == "__main__":
    sys.exit(main())
