"""Draw quality at equal speed: ours, and Transformers in CTranslate2, in several sizes.

python examples/benchmarks/quality_speed.py --out examples/benchmarks/quality_speed.png

Speed is that of equal_speed.csv. BLEU is that of the trainings of examples/convergence to the end:
the mean over the seeds, at the dropout of the lowest validation loss. Of the Transformers it is
that of the better norm, before or after the sublayers.
Prints a table: beside each Transformer ours of the same size, and the largest that is as fast.
"""

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

from matplotlib import pyplot

_HERE = Path(__file__).parent
_PANELS = {"2048": "batches of 2,048 tokens", "0": "a sentence at a time"}
_COLORS = {"exported": "tab:red", "CTranslate2": "0.25"}
_LABELS = {"exported": "ours", "CTranslate2": "Transformer in CTranslate2"}
# Where the trainings of each size are: stages, and models of which the best counts.
_NORMS = ("transformer_pre", "transformer_post")
_TRAINED = {
    "exported d 128, 4+4": (("multi30k-128", "multi30k-race"), ("resmlp_plus",)),
    "exported d 128, 6+4": (("multi30k-deeper",), ("resmlp_plus_6_4",)),
    "exported d 256, 3+3": (("multi30k-256",), ("resmlp_plus",)),
    "CTranslate2 d 128, 4+4": (("multi30k-128", "multi30k-race"), _NORMS),
    "CTranslate2 d 256, 3+3": (("multi30k-256",), _NORMS),
}


def main() -> None:
    """Draw, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", type=Path, default=_HERE / "equal_speed.csv")
    parser.add_argument("--quality", type=Path, default=_HERE.parent / "convergence/results.csv")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for row in _read(arguments.speed):
        rates[row["batch_tokens"]][row["rival"]] = float(row["rate"])
    finals = [row for row in _read(arguments.quality) if row["purpose"] == "final"]
    bleus = {name: find_bleu(finals, *where) for name, where in _TRAINED.items()}
    draw(rates, bleus, arguments.out)
    print(make_table(rates, bleus))


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def find_bleu(finals: list[dict], stages: tuple[str, ...], models: tuple[str, ...]) -> float:
    """The mean over seeds of the best model, at the dropout of the lowest validation loss."""
    found = []
    for model in models:
        own = [row for row in finals if row["stage"] in stages and row["model"] == model]
        dropout = min(own, key=lambda row: float(row["valid_nll_base2"]))["dropout"]
        found.append(mean(float(row["bleu"]) for row in own if row["dropout"] == dropout))
    return max(found)


def draw(rates: dict[str, dict[str, float]], bleus: dict[str, float], path: Path) -> None:
    """BLEU against sentences a second, a panel for each way to send text.

    Args:
        rates: Sentences a second by the tokens of a batch, and by the name of the model.
        bleus: By the name, of those that were trained.
        path: Where the picture goes.
    """
    pyplot.rcParams.update({"font.size": 11, "axes.titlesize": 11})  # GitHub shows 100 dots an inch
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.9), sharey=True, layout="constrained")
    for panel, (tokens, title) in zip(panels, _PANELS.items(), strict=True):
        for kind, color in _COLORS.items():
            dots = [(rates[tokens][n], bleu, n) for n, bleu in bleus.items() if n.startswith(kind)]
            for rate, bleu, name in dots:
                place = (0, -17 if rate == max(dots)[0] else 8)  # the fastest below its dot
                label = dict(xytext=place, textcoords="offset points", ha="center", color=color)
                panel.annotate(name.removeprefix(f"{kind} "), (rate, bleu), **label)
            speeds, heights, _ = zip(*dots, strict=True)
            panel.plot(speeds, heights, "o", color=color, label=_LABELS[kind])
        panel.set(title=title, xlabel="sentences a second")
        panel.margins(x=0.25, y=0.2)
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("BLEU on captions")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=150, format="png")


def make_table(rates: dict[str, dict[str, float]], bleus: dict[str, float]) -> str:
    """A row for each Transformer and way to send text, in Markdown.

    Beside it stand ours of the same size, and the largest of ours that is as fast: the slowest of
    those that are not slower.
    """
    lines = [
        "| sent | Transformer | BLEU | ours of this size | BLEU | the largest as fast | BLEU |",
        "| --- " * 7 + "|",
    ]

    def say(name: str) -> str:
        return f"{bleus[name]:.2f}" if name in bleus else "not trained"

    for tokens, sent in _PANELS.items():
        ours = {n: rate for n, rate in rates[tokens].items() if n.startswith("exported")}
        for name in [n for n in rates[tokens] if n not in ours]:
            rate = rates[tokens][name]
            same = name.replace("CTranslate2", "exported")
            equal = min((n for n in ours if ours[n] >= rate), key=ours.__getitem__)
            cells = [sent, name.partition(" ")[2], say(name)]
            cells += [f"{ours[same] / rate:.1f} times as fast", say(same)]
            cells += [equal.partition(" ")[2], say(equal)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
