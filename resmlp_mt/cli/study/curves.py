"""Draw the loss of one or more training runs from fairseq's JSON logs.

Train with --log-format json --log-file FILE; several files are drawn together.

  resmlp-mt study curves checkpoints/mine/train.log --out curve.png
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.study.output import add_picture, import_pyplot, prepare_output, save, spell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    add_picture(parser, required=True)
    parser.add_argument(
        "--metric", help="what to draw (default: nll_loss, or loss where a log has none; base 2)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Draw training as a thin line, validation as a thick one with points."""
    from resmlp_mt.analysis.training_log import choose_metric, read_entries, read_log

    prepare_output(arguments, *arguments.logs)
    logs = {log: read_entries(log) for log in arguments.logs}
    metric = arguments.metric or choose_metric(logs.values())
    short = {log: log.absolute().parent.name if log.stem == "train" else log.stem for log in logs}
    figure, axes = import_pyplot().subplots(figsize=(7, 4.5), layout="constrained")
    curves, names = [], []
    for i, (log, entries) in enumerate(logs.items()):
        train, valid = read_log(log, metric, entries)
        name = short[log] if list(short.values()).count(short[log]) == 1 else str(log)
        name = spell(name).replace("$", r"\$")  # which else begins a formula
        style, drawn = {"color": f"C{i}"}, []
        if train:  # a run shorter than --log-interval has none
            drawn = axes.plot(*zip(*train, strict=True), linewidth=0.8, alpha=0.6, **style)
        if valid:
            points = zip(*valid, strict=True)
            drawn, name = axes.plot(*points, marker="o", markersize=3, **style), f"{name}, valid"
        curves += drawn
        names += [name] * len(drawn)
    axes.set(xlabel="updates", ylabel=metric, title="thin: training")
    axes.grid(alpha=0.3)
    if curves:  # matplotlib would leave out a name that begins with a _ if it was the label
        axes.legend(curves, names)
    save(figure, arguments.out)
