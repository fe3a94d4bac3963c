"""Measure how well a model's features tell the classes of a folder of images apart.

The model is not trained. --knn lets the nearest training images vote. --linear trains a linear
classifier (logistic regression) on the features of the training images. Without either flag both
are done. Each prints a line: its name, and its top-1 on the validation images in percent.

  resmlp-mt study probe checkpoints/dino/checkpoint_last.pt cifar10/
  resmlp-mt study probe cifar10 cifar10.tar.xz --knn 10 --split test --csv probe.csv
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.flags import add_device, add_model, positive
from resmlp_mt.cli.study.output import add_table, prepare_output
from resmlp_mt.cli.tables import write_table
from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    add = parser.add_argument
    add("data", type=Path, metavar="DIR", help="folder or .tar with train/ and val/")
    add("--knn", type=int, metavar="K", help="k-NN, with K neighbours (20)")
    said = "a neighbour has exp(cosine / T) votes (default: 0.07)"
    add("--temperature", type=float, metavar="T", help=said)
    add("--linear", action="store_true", help="a linear classifier")
    said = "take the moving average of --store-ema (default: of image_pretraining, DINO's teacher)"
    add("--ema", action=argparse.BooleanOptionalAction, help=said)
    add("--split", choices=["valid", "test"], default="valid", help="to score on")
    add_table(parser)
    add_device(parser)
    add("--batch-size", type=positive, default=256, metavar="N", help="images at once")


def run(arguments: argparse.Namespace) -> None:
    """Measure, and print the results, alone on standard output."""
    from resmlp_mt.analysis.probe import (
        FeatureExtractor,
        check_neighbours,
        knn_accuracy,
        linear_accuracy,
        open_both,
    )

    if arguments.temperature is not None and arguments.linear and arguments.knn is None:
        raise UserError("--temperature is for neighbours: give --knn too")
    temperature = 0.07 if arguments.temperature is None else arguments.temperature
    prepare_output(arguments, arguments.data)
    extractor = FeatureExtractor.from_pretrained(arguments.model, arguments.ema, arguments.device)
    folders = open_both(arguments.data, arguments.split, extractor.cut.in_chans)
    if arguments.knn is None and not arguments.linear:
        arguments.knn, arguments.linear = min(20, len(folders[0])), True
    if arguments.knn is not None:
        check_neighbours(arguments.knn, temperature, len(folders[0]))
    train, valid = (
        extractor.extract(folder, arguments.batch_size, name)
        for folder, name in zip(folders, ("train", arguments.split), strict=True)
    )
    results, device = [], extractor.device
    if arguments.knn is not None:
        top1 = knn_accuracy(train, valid, arguments.knn, temperature, device)
        results.append(("knn", f"k {arguments.knn}, temperature {temperature:g}", f"{top1:.2f}"))
    if arguments.linear:
        top1, penalty = linear_accuracy(train, valid, device)
        results.append(("linear", f"penalty {penalty:g}", f"{top1:.2f}"))
    for method, settings, top1 in results:
        print(f"{method:8}{top1:>6}  ({settings})")
    if arguments.csv:
        columns = ["model", "weights", "data", "split", "images", "method", "settings", "top1"]
        about = [arguments.model, "ema" if extractor.averaged else "model", arguments.data]
        about += [arguments.split, len(valid.targets)]
        write_table(arguments.csv, columns, ([*about, *row] for row in results))
