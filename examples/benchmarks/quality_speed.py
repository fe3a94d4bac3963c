"""Draw quality against speed: our translators, and what one would use in their place.

python examples/benchmarks/quality_speed.py --out examples/benchmarks/quality_speed.png

A line is a model, a dot on it a beam. Each race of pareto.sh is a row of panels: pareto.csv and
everyday.csv, if no others are named. All rows span as many BLEU.
"""

import argparse
import csv
import sys
from pathlib import Path

from matplotlib import pyplot
from matplotlib.container import ErrorbarContainer
from matplotlib.ticker import MultipleLocator

_RACES = [Path(__file__).with_name(name) for name in ("pareto.csv", "everyday.csv")]
_TEXTS = {"test1.en": "our own Tatoeba", "test.en": "Multi30k"}
_PANELS = {"2048": "batches of 2,048 tokens", "0": "a sentence at a time"}
_MARKERS = "osD^v"
_NOTE = "Bars: the span over the rounds, relative to the first of the legend"


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
    pyplot.rcParams.update({"font.size": 11, "axes.titlesize": 11})  # GitHub shows 100 dots an inch
    draw(races, arguments.out)


def draw(races: list[list[dict]], path: Path) -> None:
    """BLEU against sentences a second, a row for each race, a panel for each way to send text."""
    figure, panels = pyplot.subplots(
        len(races), 2, figsize=(8, 3.3 * len(races) + 0.6), sharey="row", layout="constrained",
        squeeze=False,
    )  # fmt: skip
    bleus = [[float(result["bleu"]) for result in race] for race in races]
    half = 0.65 * max(max(found) - min(found) for found in bleus)
    lines = {}
    for row, race, found in zip(panels, races, bleus, strict=True):
        rivals = list(dict.fromkeys(result["rival"] for result in race))
        styles, labels = _choose_styles(rivals), _choose_labels(rivals)
        middle = (max(found) + min(found)) / 2
        text = race[0]["text"]
        for panel, (tokens, title) in zip(row, _PANELS.items(), strict=True):
            for rival, style in styles.items():
                own = [r for r in race if (r["rival"], r["batch_tokens"]) == (rival, tokens)]
                lines[labels[rival]] = _line(panel, own, style)
            panel.set(title=f"{_TEXTS.get(text, text)}, {title}", xlabel="sentences a second")
            panel.margins(x=0.4)  # room for the beams
            panel.set_xlim(left=0)
            panel.set_ylim(middle - half, middle + half)
            panel.yaxis.set_major_locator(MultipleLocator(0.5))
            panel.grid(alpha=0.3)
        row[0].set_ylabel("BLEU")
    figure.legend(lines.values(), lines, loc="outside upper center", ncols=2)
    figure.supxlabel(_NOTE, fontsize=11)
    figure.savefig(path, dpi=150, format="png")


def _choose_labels(rivals: list[str]) -> dict[str, str]:
    """Of "exported 6+2" and "CTranslate2 6+2, pre-norm"; with the layers where these differ."""
    names, layers = {}, {}
    for rival in rivals:
        kind, layers[rival], *norms = rival.replace(",", "").split(" ", 2)
        norms = " ".join(norms).replace("norms before", "pre-norm")  # as older rows have it
        names[rival] = "ours" if kind == "exported" else f"Transformer ({norms}) in {kind}"
    differ = len({*layers.values()}) > 1
    return {
        rival: f"{name}, {layers[rival]} layers, 8 bits" if differ else f"{name}, 8 bits"
        for rival, name in names.items()
    }


def _choose_styles(rivals: list[str]) -> dict[str, dict]:
    """Ours are red and theirs are gray, each with a marker of its own among its kind."""
    ours = [rival for rival in rivals if rival.startswith("exported")]
    theirs = [rival for rival in rivals if rival not in ours]
    return {
        rival: {"color": color, "marker": _MARKERS[place % len(_MARKERS)]}
        for kind, color in ((ours, "tab:red"), (theirs, "0.25"))
        for place, rival in enumerate(kind)
    }


def _line(panel: pyplot.Axes, rows: list[dict], style: dict) -> ErrorbarContainer:
    bleus = [float(row["bleu"]) for row in rows]
    rates = [float(row["rate"]) for row in rows]
    spans = [
        [
            rate * abs(float(row[end]) / float(row["ratio"]) - 1)
            for rate, row in zip(rates, rows, strict=True)
        ]
        for end in ("least", "most")
    ]
    if style["marker"] == _MARKERS[0]:  # the dots of the others have the same order
        for rate, bleu, row in zip(rates, bleus, rows, strict=True):
            place = (-6, 7) if rate == min(rates) else (7, 1)  # above it, or on the right
            panel.annotate(f"beam {row['beam']}", (rate, bleu), place, textcoords="offset points")
    return panel.errorbar(rates, bleus, None, spans, elinewidth=2, capsize=3, alpha=0.8, **style)


if __name__ == "__main__":
    sys.exit(main())
