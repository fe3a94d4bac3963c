"""Make a folder with all that a model needs: weights, dictionaries, SentencePiece model.

The optimizer's state is left out. The folder can be moved, and `translate --model DIR` takes it.

  resmlp-mt pack checkpoints/mine/checkpoint_average.pt --half --out my-model
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("model", metavar="CHECKPOINT|DIR")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--half", action="store_true", help="store fp16 weights, half the size")


def run(arguments: argparse.Namespace) -> None:
    """Pack, and list what is in the folder."""
    from resmlp_mt.checkpoints.pack import pack_model

    pack_model(arguments.model, arguments.out, arguments.half)
    print_folder(arguments.out)


def print_folder(folder: Path) -> None:
    """Say what was written."""
    print(f"wrote {folder}")
    for path in sorted(folder.iterdir()):
        print(f"  {path.name} ({path.stat().st_size / 2**20:.1f} MiB)")
