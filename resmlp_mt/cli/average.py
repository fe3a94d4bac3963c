"""Average the weights of several checkpoints. The mean is mostly better than the best one.

resmlp-mt average checkpoints/mine --last 10 --out checkpoints/mine/checkpoint_average.pt
resmlp-mt average a.pt b.pt --out mean.pt
resmlp-mt average checkpoints/mine/checkpoint_best.pt --ema --out ema.pt
"""

import argparse
from pathlib import Path

from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("inputs", nargs="+", type=Path, metavar="DIR|FILE")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=int, metavar="N", help="of a folder: the N latest")
    which.add_argument("--best", type=int, metavar="N", help="of a folder: the N best ones")
    said = "take the moving average that --store-ema kept in each"
    parser.add_argument("--ema", action="store_true", help=said)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")


def run(arguments: argparse.Namespace) -> None:
    """Choose, average, and say what went in."""
    from resmlp_mt.checkpoints.average import average_checkpoints

    paths = _choose(arguments)
    average_checkpoints(paths, arguments.out, arguments.ema)
    print(f"wrote {arguments.out}, the mean of{' the moving averages in' * arguments.ema}")
    for path in paths:
        print(f"  {path}")


def _choose(arguments: argparse.Namespace) -> list[Path]:
    from resmlp_mt.checkpoints.average import choose_best, find_checkpoints

    folder, *others = arguments.inputs
    count = arguments.last if arguments.best is None else arguments.best
    if not any(path.is_dir() for path in arguments.inputs):
        if count is not None:
            raise UserError("--last and --best choose from a folder; name one folder")
        return arguments.inputs
    if others:
        raise UserError("name one folder, or several checkpoints")
    if count is None:
        raise UserError("say which checkpoints of the folder: --last N or --best N")
    if arguments.best is not None:
        return choose_best(folder, count)
    return find_checkpoints(folder, count)[-count:]
