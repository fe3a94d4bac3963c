"""Make a folder from published weights for images: facebookresearch/deit's, timm's, or BiT's.

Classify with it, validate it, or fine-tune it with fairseq-train --finetune-from-model. The file
is read without running code from it.

  resmlp-mt import-weights resmlp_12_no_dist.pth --arch resmlp_s12 --out resmlp-s12
  resmlp-mt import-weights model.safetensors --arch mixer_b16 --image-size 384 --out b16-384
  resmlp-mt import-weights mine.pth --arch "resmlp_s12 --layers 4 --embed-dim 64" --out mine
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("weights", type=Path, metavar="FILE", help=".safetensors, .pth, .pt, .bin, .tar, or .npz")
    said = "resmlp_s12, resmlp_b24_8, mixer_b16 ...; flags of the model may follow, in quotes"
    add("--arch", required=True, help=said)
    add("--out", required=True, type=Path, metavar="DIR")
    said = "side of the images in pixels; mixing matrices are interpolated (default: the weights')"
    add("--image-size", type=int, metavar="N", help=said)
    said = "file with the name of a class a line, in the order of the outputs (default: numbers)"
    add("--classes", type=Path, metavar="FILE", help=said)
    said = "take the moving average that timm or DeiT saved beside (default: if it is there)"
    add("--ema", action=argparse.BooleanOptionalAction, help=said)


def run(arguments: argparse.Namespace) -> None:
    """Import, and say what was found."""
    from resmlp_mt.checkpoints.weights import import_weights

    found = import_weights(
        arguments.weights,
        arguments.arch,
        arguments.out,
        arguments.image_size,
        arguments.classes,
        arguments.ema,
    )
    print(f"wrote {arguments.out}: {found}")
