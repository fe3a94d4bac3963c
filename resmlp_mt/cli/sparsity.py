"""Count the weights of each layer's matrices that are next to nothing: figure 3 of the paper.

A mixes positions. B and C are the first and the second matrix of the channel MLP. The table gives
the share of weights that are below 5% of the largest of their matrix, in absolute value. Each
mixing head is a matrix of its own. Of a decoder's A only the weights that look back count. Weights
between positions that no training text reached count too. They are about as they were initialised.

MODEL is a checkpoint, a folder with one, or the name of a model that comes with the package.

--prune sets such weights of A to zero, at each of the thresholds, and scores what is left: the
top-1 of a classifier, the BLEU of a translator. The table, --csv and --out are then of the scores.
0 stands for the model as it is.

  resmlp-mt sparsity multi30k-en-de --out sparsity.png
  resmlp-mt sparsity cifar10 --prune 0.05 0.1 0.2 --data images --out pruned.png
  resmlp-mt sparsity multi30k-en-de --prune 0.05 --input test.en --reference test.de
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.bleu import add_tokenize
from resmlp_mt.cli.flags import add_device
from resmlp_mt.cli.pictures import add_picture, add_title, import_pyplot, save
from resmlp_mt.errors import UserError

_THRESHOLD, _MATRICES = 0.05, "A"  # unless given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("model", metavar="MODEL")
    add_picture(parser, help="draw the shares over the layers")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write them as CSV")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help=f"what is small, as a share of the largest weight (default: {_THRESHOLD})",
    )
    parser.add_argument(
        "--prune", type=float, nargs="+", metavar="X", help="thresholds to prune the model at"
    )
    parser.add_argument(
        "--matrices",
        choices=["A", "B", "C", "AB", "AC", "BC", "ABC"],
        help=f"with --prune: which ones (default: {_MATRICES})",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="score a classifier on val/ of this folder or .tar"
    )
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="score a translator on this text"
    )
    parser.add_argument("--reference", type=Path, metavar="FILE", help="and its translation")
    add_tokenize(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure, write what was asked for, and print the table, alone on standard output."""
    import sys

    from resmlp_mt.analysis.matrices import measure_sparsity, read_matrices
    from resmlp_mt.checkpoints.checksum import list_files
    from resmlp_mt.cli import pruning
    from resmlp_mt.files.output import prepare_target, refuse_overwriting

    _check_together(arguments)
    arguments.threshold = _THRESHOLD if arguments.threshold is None else arguments.threshold
    arguments.matrices = arguments.matrices or _MATRICES
    for name, values in (("threshold", [arguments.threshold]), ("prune", arguments.prune or [])):
        for value in values:
            if not 0 < value <= 1:
                raise UserError(f"--{name} {value} is no share between 0 and 1")
    given = filter(None, (arguments.data, arguments.input, arguments.reference))
    read = [*list_files(arguments.model), *given]
    for path in filter(None, (arguments.csv, arguments.out)):
        prepare_target(path)
        refuse_overwriting(path, read)
    _, parts = read_matrices(arguments.model)
    if arguments.prune:
        rows = pruning.score_pruned(arguments)
        lines, columns = pruning.table(rows), list(rows[0])
        draw, cells = pruning.draw, [list(row.values()) for row in rows]
    else:
        rows = measure_sparsity(parts, arguments.threshold)
        lines, columns = table(rows), ["part", "layer", "matrix", "share", "weights"]
        draw, cells = _draw, [list(vars(row).values()) for row in rows]
    if arguments.csv:
        _write_csv(columns, cells, arguments.csv)
    if arguments.out:
        draw(rows, arguments)
    print("\n".join(lines))
    for path in filter(None, (arguments.csv, arguments.out)):
        print(f"wrote {path}", file=sys.stderr)


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse flags that would do nothing."""
    if arguments.csv and arguments.out and arguments.csv.resolve() == arguments.out.resolve():
        raise UserError(f"--csv and --out are both {arguments.out}: give them two names")
    if arguments.prune:
        if arguments.threshold is not None:
            raise UserError("--threshold is for the table of shares; name thresholds in --prune")
        return
    if arguments.data or arguments.input or arguments.reference:
        raise UserError("--data, --input and --reference are what --prune scores on; give it too")
    if (arguments.tokenize, arguments.device) != ("13a", "auto"):
        raise UserError("--tokenize and --device are for the scores of --prune; give it too")
    if arguments.matrices:
        raise UserError("--matrices are what --prune prunes; give it too, or leave it out")


def table(rows: list) -> list[str]:
    """A line a layer, in aligned columns; '-' where the model has no such matrix."""
    shares = {(row.part, row.layer, row.matrix): f"{row.share:.4f}" for row in rows}
    lines = [f"{'part':8}{'layer':>5}{'A':>8}{'B':>8}{'C':>8}"]
    for part, layer in dict.fromkeys((row.part, row.layer) for row in rows):
        cells = "".join(f"{shares.get((part, layer, letter), '-'):>8}" for letter in "ABC")
        lines.append(f"{part:8}{layer:5}{cells}")
    return lines


def _write_csv(columns: list[str], cells: list[list], out: Path) -> None:
    import csv

    from resmlp_mt.files.output import whole_file

    with whole_file(out) as path, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in cells:
            writer.writerow(f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row)


def _draw(rows: list, arguments: argparse.Namespace) -> None:
    """A line a matrix over depth, the parts side by side."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    parts = list(dict.fromkeys(row.part for row in rows))
    figure, axes = import_pyplot().subplots(
        1,
        len(parts),
        figsize=(1.5 + 4.5 * len(parts), 4),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for axis, part in zip(axes[0], parts, strict=True):
        for colour, letter in enumerate("ABC"):
            points = [(r.layer, r.share) for r in rows if (r.part, r.matrix) == (part, letter)]
            if points:
                style = {"color": f"C{colour}", "marker": "o", "markersize": 4}
                axis.plot(*zip(*points, strict=True), label=letter, **style)
        axis.set(xlabel="layer", title="" if part == "image" else part)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axis.grid(alpha=0.3)
    axes[0][0].set_ylim(bottom=0)
    axes[0][0].set_ylabel("share of weights")
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, title="matrix", loc="outside right upper")
    limit = f"{100 * arguments.threshold:g}% of their matrix's largest"
    add_title(figure, arguments.model, f": weights below {limit}")
    save(figure, arguments.out)
