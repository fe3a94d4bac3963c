"""Draw quality against speed: our translators, and what one would use in their place.

python examples/benchmarks/quality_speed.py --out examples/benchmarks/quality_speed.png

A line is a model, a dot on it a beam. The bar across a dot spans the rounds of the race. Each race
of pareto.sh is a row of panels: everyday.csv and pareto.csv, if no others are named.
"""

import argparse
import csv
import sys
from pathlib import Path

from matplotlib import pyplot

_RACES = [Path(__file__).with_name(name) for name in ("everyday.csv", "pareto.csv")]
_TEXTS = {"test1.en": "Tatoeba", "test.en": "Multi30k"}
_PANELS = {"2048": "in batches of 2,048 tokens", "0": "a sentence at a time"}
_MARKERS = "osD^v"


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", type=Path, nargs="+", default=_RACES, metavar="FILE.csv")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    races = []
    for path in arguments.speed:
        with open(path, newline="", encoding="utf-8") as stream:
            races.append(list(csv.DictReader(stream)))
    draw(races, arguments.out)


def draw(races: list[list[dict]], path: Path) -> None:
    """BLEU against sentences a second, a row for each race, a panel for each way to send text."""
    figure, panels = pyplot.subplots(
        len(races), 2, figsize=(10, 4.2 * len(races)), sharey="row", layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for row, race in zip(panels, races, strict=True):
        styles = _choose_styles(list(dict.fromkeys(result["rival"] for result in race)))
        for panel, (tokens, title) in zip(row, _PANELS.items(), strict=True):
            for rival, style in styles.items():
                own = [r for r in race if (r["rival"], r["batch_tokens"]) == (rival, tokens)]
                _line(panel, rival, own, style)
            panel.set(title=title, xlabel="sentences a second")
            panel.set_xlim(left=0)
            panel.margins(y=0.1)  # room for the numbers
            panel.grid(alpha=0.3)
        text = race[0]["text"]
        row[0].set_ylabel(f"BLEU, {_TEXTS.get(text, text)}")
        row[0].legend(loc="best", fontsize=8)
    figure.savefig(path, dpi=110, format="png")


def _choose_styles(rivals: list[str]) -> dict[str, dict]:
    """Ours are red and theirs are gray, each with a marker of its own among its kind."""
    ours = [rival for rival in rivals if rival.startswith("exported")]
    theirs = [rival for rival in rivals if rival not in ours]
    return {
        rival: {"color": color, "marker": _MARKERS[place % len(_MARKERS)]}
        for kind, color in ((ours, "tab:red"), (theirs, "0.25"))
        for place, rival in enumerate(kind)
    }


def _line(panel: pyplot.Axes, rival: str, rows: list[dict], style: dict) -> None:
    bleus = [float(row["bleu"]) for row in rows]
    rates = [float(row["rate"]) for row in rows]
    spans = [
        [
            rate * abs(float(row[end]) / float(row["ratio"]) - 1)
            for rate, row in zip(rates, rows, strict=True)
        ]
        for end in ("least", "most")
    ]
    panel.errorbar(rates, bleus, None, spans, label=rival, elinewidth=1, alpha=0.8, **style)
    for rate, bleu, row in zip(rates, bleus, rows, strict=True):
        panel.annotate(
            row["beam"], (rate, bleu), xytext=(4, 5), textcoords="offset points", fontsize=8
        )


if __name__ == "__main__":
    sys.exit(main())
