"""Write a translator or a classifier in the form that is fastest on a CPU, for ONNX Runtime.

Norms and scales are folded into the weights beside them. With --int8 the weights take a quarter of
the size, and less time. `translate` and `classify` take the folder, which needs nothing else.

  resmlp-mt export multi30k-en-de --int8 --out fast-model
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("model", metavar="MODEL", help="a shipped model, folder, checkpoint")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--int8", action="store_true", help="products of 8-bit integers")


def run(arguments: argparse.Namespace) -> None:
    """Export, and list what is in the folder."""
    from resmlp_mt.cli.pack import print_folder
    from resmlp_mt.export.writer import export_model

    export_model(arguments.model, arguments.out, arguments.int8)
    print_folder(arguments.out)
