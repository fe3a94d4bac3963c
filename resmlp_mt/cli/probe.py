"""Measure how well a model's features tell the classes of a folder of images apart.

The model is not trained. --knn lets the nearest training images vote. --linear trains a linear
classifier (logistic regression) on the features of the training images. Without either flag both
are done. Each prints a line: its name, and its top-1 on the validation images in percent.

  resmlp-mt probe checkpoints/dino/checkpoint_last.pt cifar10/
  resmlp-mt probe cifar10 cifar10.tar.xz --knn 10 --split test --csv probe.csv
"""

import argparse
from pathlib import Path

from resmlp_mt.cli.flags import add_device, check_positive
from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("model", metavar="MODEL", help="a shipped model, folder, checkpoint")
    parser.add_argument(
        "data", type=Path, metavar="DIR", help="folder or .tar with train/ and val/"
    )
    parser.add_argument("--knn", type=int, metavar="K", help="k-NN, with K neighbours (20)")
    parser.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        help="a neighbour has exp(cosine / T) votes (default: 0.07)",
    )
    parser.add_argument("--linear", action="store_true", help="a linear classifier")
    parser.add_argument(
        "--ema",
        action=argparse.BooleanOptionalAction,
        help="take the moving average that --store-ema kept; with image_pretraining it is DINO's "
        "teacher, and taken if it is there",
    )
    parser.add_argument(
        "--split", choices=["valid", "test"], default="valid", help="default: %(default)s"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the results as CSV")
    add_device(parser)
    parser.add_argument(
        "--batch-size",
        type=int,
        default=256,
        metavar="N",
        help="images computed together (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Measure, and print the results, alone on standard output."""
    import sys

    from resmlp_mt.analysis.probe import (
        FeatureExtractor,
        check_neighbours,
        knn_accuracy,
        linear_accuracy,
        open_both,
    )
    from resmlp_mt.checkpoints.checksum import list_files
    from resmlp_mt.files.output import prepare_target, refuse_overwriting

    check_positive(arguments, "batch_size")
    if arguments.temperature is None:
        arguments.temperature = 0.07
    elif arguments.linear and arguments.knn is None:
        raise UserError("--temperature is for neighbours: give --knn too")
    if arguments.csv:
        prepare_target(arguments.csv)
        refuse_overwriting(arguments.csv, [*list_files(arguments.model), arguments.data])
    extractor = FeatureExtractor.from_pretrained(arguments.model, arguments.ema, arguments.device)
    folders = open_both(arguments.data, arguments.split, extractor.cut.in_chans)
    if arguments.knn is None and not arguments.linear:
        arguments.knn, arguments.linear = min(20, len(folders[0])), True
    if arguments.knn is not None:
        check_neighbours(arguments.knn, arguments.temperature, len(folders[0]))
    train, valid = (
        extractor.extract(folder, arguments.batch_size, name)
        for folder, name in zip(folders, ("train", arguments.split), strict=True)
    )
    results, device = {}, extractor.device
    if arguments.knn is not None:
        settings = f"k {arguments.knn}, temperature {arguments.temperature:g}"
        top1 = knn_accuracy(train, valid, arguments.knn, arguments.temperature, device)
        results["knn"] = (top1, settings)
    if arguments.linear:
        top1, penalty = linear_accuracy(train, valid, device)
        results["linear"] = (top1, f"penalty {penalty:g}")
    for method, (top1, settings) in results.items():
        print(f"{method:8}{top1:6.2f}  ({settings})")
    if arguments.csv:
        _write_csv(results, arguments, extractor.averaged, len(valid.targets))
        print(f"wrote {arguments.csv}", file=sys.stderr)


def _write_csv(results: dict, arguments: argparse.Namespace, averaged: bool, images: int) -> None:
    import csv

    from resmlp_mt.files.output import whole_file

    columns = ["model", "weights", "data", "split", "images", "method", "settings", "top1"]
    weights = "ema" if averaged else "model"
    fixed = [arguments.model, weights, arguments.data, arguments.split, images]
    options = {"newline": "", "encoding": "utf-8", "errors": "backslashreplace"}  # odd names
    with whole_file(arguments.csv) as path, path.open("w", **options) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for method, (top1, settings) in results.items():
            writer.writerow([*fixed, method, settings, f"{top1:.2f}"])
