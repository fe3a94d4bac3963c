"""Sum the runs up: one row a variant, means over seeds, and a plot of them.

cd examples/ablation
python report.py results.csv --out summary.csv --plot plot.png
"""

import argparse
import csv
import statistics
import sys
from pathlib import Path

import matplotlib
from catalogue import RUNS

from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

COLUMNS = (
    "base,factor,value,updates,parameters,seeds,valid_nll,difference,valid_bleu,brevity".split(",")
)
_ORDER = [
    (base, factor, value)
    for base, factors in RUNS.items()
    for factor, values in factors.items()
    for value in values
]


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the table, CSV")
    parser.add_argument("--plot", type=Path, help="the plot, if one is wanted")
    arguments = parser.parse_args()
    with open(arguments.results, newline="", encoding="utf-8") as stream:
        runs = list(csv.DictReader(stream))
    unknown = {_name(run) for run in runs} - set(_ORDER)
    settings = {(run["data"], run["subset"], run["max_tokens"]) for run in runs}
    if unknown or len(settings) != 1:
        what = f"not in catalogue.py: {unknown}" if unknown else f"not one setting: {settings}"
        print(f"report.py: {arguments.results}: {what}", file=sys.stderr)
        return 2
    with whole_file(arguments.out) as path, open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sum_up(runs))
    if arguments.plot:
        with whole_file(arguments.plot) as path:
            draw(runs, path)
    return 0


def sum_up(runs: list[dict]) -> list[dict]:
    """A row for each variant in the order of RUNS; the difference is to its base, seed by seed."""
    rows, groups = [], _group(runs)
    for (updates, base, factor, value), seeds in groups.items():
        plain = groups.get((updates, base, "base", next(iter(RUNS[base]["base"]))), {})
        differences = [
            _nll(run) - _nll(plain[seed]) for seed, run in seeds.items() if seed in plain
        ]
        nll, bleu, brevity = (
            statistics.mean(float(run[name]) for run in seeds.values())
            for name in ("valid_nll_base2", "bleu", "brevity_penalty")
        )
        rows.append(
            {
                "base": base,
                "factor": factor,
                "value": value,
                "updates": updates,
                "parameters": next(iter(seeds.values()))["parameters"],
                "seeds": len(seeds),
                "valid_nll": f"{nll:.3f}",
                "difference": f"{statistics.mean(differences):+.3f}" if differences else "",
                "valid_bleu": f"{bleu:.2f}",
                "brevity": f"{brevity:.3f}",
            }
        )
    return rows


def draw(runs: list[dict], path: Path) -> None:
    """Every run a dot, every variant a line, every base and length of training a panel."""
    groups = _group(runs)
    shown = list(dict.fromkeys(key[:2] for key in groups))
    counts = [sum(key[:2] == setting for key in groups) for setting in shown]
    figure, panels = pyplot.subplots(
        len(shown), 1, figsize=(9, 1.5 * len(shown) + 0.22 * sum(counts)), squeeze=False,
        height_ratios=counts, layout="constrained",
    )  # fmt: skip
    for (updates, base), panel in zip(shown, panels[:, 0], strict=True):
        names = [key for key in groups if key[:2] == (updates, base)]
        for y, key in enumerate(names):
            nll, plain = [_nll(run) for run in groups[key].values()], key[2] == "base"
            panel.plot(nll, [y] * len(nll), "o", color="tab:red" if plain else "tab:blue")
            if plain:
                panel.axvline(statistics.mean(nll), color="tab:red", linewidth=0.8)
        panel.set_yticks(range(len(names)), [f"{key[2]}: {key[3]}" for key in names], fontsize=8)
        panel.invert_yaxis()
        panel.set_title(f"around {names[0][3]} (red), {updates:,} updates", fontsize=9)
        panel.grid(axis="x", alpha=0.3)
    panels[-1, 0].set_xlabel("negative log-likelihood of the validation set, bits a token")
    figure.savefig(path, dpi=110, format="png")


def _group(runs: list[dict]) -> dict[tuple[int, str, str, str], dict[str, dict]]:
    """{(updates, base, factor, value): {seed: run}}, the shortest first, else as in RUNS."""
    groups = {}
    for run in runs:
        groups.setdefault((int(run["updates"]), *_name(run)), {})[run["seed"]] = run
    return {key: groups[key] for key in sorted(groups, key=lambda k: (k[0], _ORDER.index(k[1:])))}


def _name(run: dict) -> tuple[str, str, str]:
    return run["base"], run["factor"], run["value"]


def _nll(run: dict) -> float:
    return float(run["valid_nll_base2"])


if __name__ == "__main__":
    sys.exit(main())
