"""Write a translator or a classifier in the form that is fastest on a CPU, without torch.

`translate` and `classify` take the folder, which needs nothing else. With --int8 the weights take a
quarter of the size, and less time. --shortlist and --preview let a translator look at fewer
subwords: large vocabularies gain most. docs/export.md has what is gained and lost.

  resmlp-mt export multi30k-en-de --int8 --out fast-model
  resmlp-mt export my-model --int8 --shortlist train.en train.de --out fast-model
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.flags import add_model, add_user_dir, import_user_dir, positive
from resmlp_mt.cli.pack import print_folder
from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    text = dict(nargs=2, type=Path, metavar=("SOURCE", "TARGET"))
    add = parser.add_argument
    add_model(parser)
    add("--out", required=True, type=Path, metavar="DIR")
    add_user_dir(parser)
    add("--int8", action="store_true", help="products of 8-bit integers")
    said = "round the weights of --int8 to N bits, 4 to 8: a smaller folder that is as fast"
    add("--weight-bits", type=int, metavar="N", help=said)
    said = "training text, also .gz and .xz: look only at subwords that it has as translations"
    add("--shortlist", **text, help=said)
    said = "translations of each subword (default: 200)"
    add("--shortlist-best", type=positive, metavar="N", help=said)
    said = "frequent subwords, always in (default: 100)"
    add("--shortlist-first", type=positive, metavar="N", help=said)
    said = "text like what will be translated: all subwords are looked at roughly, likely ones well"
    add("--preview", **text, help=said)


def run(arguments: argparse.Namespace) -> None:
    """Export, and list what is in the folder."""
    from resmlp_mt.export.parallel_text import ParallelText
    from resmlp_mt.export.writer import ShortlistText, export_model

    lengths = {"best": arguments.shortlist_best, "first": arguments.shortlist_first}
    lengths = {name: length for name, length in lengths.items() if length is not None}
    shortlist = None
    if arguments.shortlist:
        shortlist = ShortlistText(ParallelText(*arguments.shortlist), **lengths)
    elif lengths:
        raise UserError(f"--shortlist-{min(lengths)} needs --shortlist and its two files")
    preview = ParallelText(*arguments.preview) if arguments.preview else None
    import_user_dir(arguments)
    export_model(
        arguments.model, arguments.out, arguments.int8, shortlist, arguments.weight_bits, preview
    )
    print_folder(arguments.out)
