"""Write a classifier's weights with the names that facebookresearch/deit or timm give them.

The suffix of the file decides its form. Only what was released can be written: of ResMLP the linear
token mixer with affine norm and average pooling, and the other families that timm has.

  resmlp-mt export-weights checkpoints/mine --format timm --out mine.safetensors
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.flags import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    parser.add_argument("--format", required=True, choices=["official", "timm"])
    parser.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help="ends in .safetensors or .pth"
    )


def run(arguments: argparse.Namespace) -> None:
    """Export."""
    from resmlp_mt.checkpoints.weights import export_weights

    arch = export_weights(arguments.model, arguments.format, arguments.out)
    print(
        f"wrote {arguments.out} with the names of {arguments.format} weights; to take them back: "
        f'resmlp-mt import-weights {arguments.out} --arch "{arch}" --out DIR'
    )
