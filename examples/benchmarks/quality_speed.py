"""Draw quality against speed: our translator, and what one would use in its place.

python examples/benchmarks/quality_speed.py --out examples/benchmarks/quality_speed.png

A dot is a row of translate.csv over the whole test set. The bar across it spans the rounds of the
race. The upright bar spans the seeds of the same model in examples/multi30k.
"""

import argparse
import csv
import sys
from pathlib import Path

from matplotlib import pyplot

_HERE = Path(__file__).parent
_OURS, _THEIRS = ("resmlp_plus_tiny", "tab:red"), ("transformer_tiny", "0.25")
# A rival of translate.csv: the trained model that it runs, its label, its marker.
_RIVALS = {
    "transformer": (_THEIRS, "Transformer, fairseq", "o"),
    "CTranslate2": (_THEIRS, "Transformer, CTranslate2", "s"),
    "CTranslate2 int8": (_THEIRS, "Transformer, CTranslate2 int8", "D"),
    "ours": (_OURS, "ours, fairseq", "o"),
    "exported": (_OURS, "ours, exported", "s"),
    "exported int8": (_OURS, "ours, exported int8", "D"),
}
_PANELS = {"2048": "in batches of 2,048 tokens", "0": "a sentence at a time"}


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", type=Path, default=_HERE / "translate.csv", metavar="FILE.csv")
    parser.add_argument(
        "--seeds",
        type=Path,
        default=_HERE.parent / "multi30k" / "results.csv",
        metavar="FILE.csv",
        help="BLEU of every seed",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    draw(_read(arguments.speed), _read(arguments.seeds), arguments.out)


def draw(speed: list[dict], seeds: list[dict], path: Path) -> None:
    """BLEU against sentences a second, a panel for each way to send the text."""
    largest = max(int(row["sentences"]) for row in speed)
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for panel, (tokens, title) in zip(panels, _PANELS.items(), strict=True):
        for row in speed:
            if row["batch_tokens"] == tokens and int(row["sentences"]) == largest:
                _dot(panel, row, _scores(seeds, _RIVALS[row["rival"]][0][0]))
        panel.set(title=title, xlabel="sentences a second")
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("BLEU")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110, format="png")


def _dot(panel: pyplot.Axes, row: dict, scores: list[float]) -> None:
    (_, color), label, marker = _RIVALS[row["rival"]]
    rate, bleu, ratio = (float(row[name]) for name in ("rate", "bleu", "ratio"))
    rates = [[rate * (1 - float(row["least"]) / ratio)], [rate * (float(row["most"]) / ratio - 1)]]
    bleus = [[bleu - min(bleu, *scores)], [max(bleu, *scores) - bleu]]
    panel.errorbar(
        rate, bleu, bleus, rates, marker, color=color, label=label, elinewidth=1, alpha=0.8
    )


def _scores(seeds: list[dict], model: str) -> list[float]:
    """BLEU of the seeds of a model with one dictionary: the first that the file has."""
    rows = [row for row in seeds if row["model"] == model]
    return [float(row["bleu"]) for row in rows if row["parameters"] == rows[0]["parameters"]]


def _read(path: Path) -> list[dict]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


if __name__ == "__main__":
    sys.exit(main())
