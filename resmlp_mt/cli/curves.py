"""Draw the loss of one or more training runs from fairseq's JSON logs.

Train with --log-format json --log-file FILE; several files are drawn together.

  resmlp-mt curves checkpoints/mine/train.log --out curve.png
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--out", required=True, type=Path, metavar="PNG")
    parser.add_argument(
        "--metric", default="nll_loss", help="what to draw (default: %(default)s, base 2)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Draw training as a thin line, validation as a thick one with points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from resmlp_mt.data.output import whole_file

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for i, log in enumerate(arguments.logs):
        train, valid = read_log(log, arguments.metric)
        name = log.parent.name if log.stem == "train" else log.stem
        style = {"color": f"C{i}"}
        if train:  # a run shorter than --log-interval has none
            axes.plot(*zip(*train, strict=True), linewidth=0.8, alpha=0.6, **style)
        if valid:
            points = zip(*valid, strict=True)
            axes.plot(*points, marker="o", markersize=3, label=f"{name}, valid", **style)
    axes.set(xlabel="updates", ylabel=arguments.metric, title="thin: training")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    with whole_file(arguments.out) as path:
        figure.savefig(path, format="png", dpi=150)
    print(f"wrote {arguments.out}")


def read_log(path: Path, metric: str) -> tuple[list, list]:
    """The (update, value) points of training and of validation in a log.

    Raises:
        UserError: If the file has none.
    """
    import json

    from resmlp_mt.data.text import read_lines
    from resmlp_mt.errors import UserError

    train, valid = [], []
    for line in read_lines(path):
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:  # other lines of the log
            continue
        if f"valid_{metric}" in entry:
            valid.append((int(entry["valid_num_updates"]), float(entry[f"valid_{metric}"])))
        elif metric in entry and "num_updates" in entry:
            train.append((int(entry["num_updates"]), float(entry[metric])))
    if not train and not valid:
        raise UserError(f"{path}: no {metric} in it; train with --log-format json --log-file FILE")
    return train, valid
