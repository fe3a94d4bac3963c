"""Count the weights of each layer's matrices that are next to nothing: figure 3 of the paper.

A mixes positions. B and C are the first and the second matrix of the channel MLP. The table gives
the share of weights that are below 5% of the largest of their matrix, in absolute value. Each
mixing head is a matrix of its own. Of a decoder's A only the weights that look back count. Weights
between positions that no training text reached count too. They are about as they were initialised.

  resmlp-mt study sparsity multi30k-en-de --out sparsity.png
"""

import argparse

from resmlp_mt.cli.flags import add_model, share
from resmlp_mt.cli.study import output
from resmlp_mt.cli.tables import align, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    output.add_picture(parser, help="draw the shares over the layers")
    output.add_table(parser)
    parser.add_argument(
        "--threshold", type=share, default=0.05, help="small, as a share of the largest weight"
    )


def run(arguments: argparse.Namespace) -> None:
    """Measure, write what was asked for, and print the table, alone on standard output."""
    from resmlp_mt.analysis.matrices import measure_sparsity, read_matrices

    output.prepare_output(arguments)
    rows = measure_sparsity(read_matrices(arguments.model)[1], arguments.threshold)
    if arguments.csv:
        columns = ["part", "layer", "matrix", "share", "weights"]
        write_table(arguments.csv, columns, (vars(row).values() for row in rows))
    if arguments.out:
        limit = f"{100 * arguments.threshold:g}% of their matrix's largest"
        output.save(_draw(rows), arguments.out, arguments.model, f": weights below {limit}")
    shares = {(row.part, row.layer, row.matrix): f"{row.share:.4f}" for row in rows}
    lines = [["part", "layer", *"ABC"]]
    for part, layer in dict.fromkeys((row.part, row.layer) for row in rows):
        lines.append([part, str(layer), *(shares.get((part, layer, x), "-") for x in "ABC")])
    print("\n".join(align(lines)))


def _draw(rows: list):
    """A line a matrix over depth, the parts side by side."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    parts = list(dict.fromkeys(row.part for row in rows))
    style = dict(squeeze=False, sharey=True, layout="constrained")
    size = (1.5 + 4.5 * len(parts), 4)
    figure, axes = output.import_pyplot().subplots(1, len(parts), figsize=size, **style)
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
    return figure
