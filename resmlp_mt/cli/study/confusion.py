"""Count which classes a classifier takes for which, on pictures whose classes are known.

FOLDER has a folder of pictures for each class, called as the model calls it. It may lack classes,
and may be a .tar. In a folder for training, --split says which of its sets has the pictures. The
table has the classes of the lowest recall first. The picture has a row for each of those that are
mixed up most, and a column for each guess. docs/images.md says how to read both.

  resmlp-mt study confusion cifar10 pictures --out confusion.png
  resmlp-mt study confusion checkpoints/mine images --split valid --csv confusion.csv
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from resmlp_mt.cli.flags import add_device, add_model, positive
from resmlp_mt.cli.pictures import add_batch_size, classify_each
from resmlp_mt.cli.study import output
from resmlp_mt.cli.tables import align, write_table
from resmlp_mt.errors import UserError, name_some, on_a_line

_MOST_DRAWN = 100  # classes, whose names can still be read
_MOST_WITH_NUMBERS = 25
_LONGEST_NAME = 24  # beside the picture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="folder or .tar with one for each class")
    splits = ["train", "valid", "test"]
    add("--split", choices=splits, help="take these images of a FOLDER with train/, val/ or test/")
    output.add_picture(parser, help="draw the matrix")
    output.add_table(parser, "write how many images of each class were taken for which, as CSV")
    add("--worst", type=positive, default=20, metavar="N", help="classes in table and picture")
    add_batch_size(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Count, print and draw all pictures that can be read; the others are named, and an error."""
    from resmlp_mt.analysis.confusion import Confusion
    from resmlp_mt.data.image_folder import ImageFolder
    from resmlp_mt.engines.classifier import Classifier

    if arguments.out:
        output.import_pyplot()  # which may be missing: better now than in the end
    output.prepare_output(arguments, arguments.folder)
    classifier = Classifier.from_pretrained(arguments.model, arguments.device)
    folder = ImageFolder(arguments.folder, arguments.split, classifier.cut.in_chans, partial=True)
    folder.align(classifier.classes)
    classes, found, broken = classifier.classes, Confusion(len(classifier.classes)), []
    classify = partial(classifier.classify, topk=5, batch_size=arguments.batch_size)
    places = range(len(folder))
    for i, best in classify_each(places, folder.open, classify, "study confusion", broken):
        found.add(int(folder.targets[i]), [guess.index for guess in best])
    if found.images and arguments.out:  # first: who reads the table may stop
        figure, said = draw(found, classes, arguments.worst)
        output.save(figure, arguments.out, arguments.model, said)
    if found.images and arguments.csv:
        write_table(arguments.csv, ["class", "guess", "images"], _list_pairs(found, classes))
    if found.images:
        print(table(found, classes, arguments.worst))
    if broken:
        raise UserError(f"{len(broken)} of {len(folder)} images could not be read")


def _list_pairs(found, classes: list[str]) -> Iterator[tuple[str, str, int]]:
    for name, row in zip(classes, found.rows, strict=True):
        for guess in sorted(row):
            yield name, classes[guess], row[guess]


def table(found, classes: list[str], worst: int) -> str:
    """The scores of all images of a `Confusion`, and a line each of the `worst` classes."""
    scores = found.score_classes()
    known = sorted((s for s in scores if s.images), key=lambda s: s.recall)
    rows = [("class", "images", "recall", "precision", "most often taken for")]
    for s in known[:worst]:
        mistaken = "-"
        if s.mistaken is not None:
            mistaken = f"{classes[s.mistaken]} ({found.rows[s.index][s.mistaken]:,})"
        precision = "-" if s.precision is None else f"{s.precision:.2f}"
        rows.append((classes[s.index], f"{s.images:,}", f"{s.recall:.2f}", precision, mistaken))
    rows = [[on_a_line(cell) for cell in row] for row in rows]
    lines = [_sum_up(found), ""]
    lines += map("{}  {[4]}".format, align(row[:4] for row in rows), rows)
    if len(known) > worst:
        lines += ["", f"Shown: {worst} of {len(known):,} classes, with the lowest recall."]
    if missing := [classes[s.index] for s in scores if not s.images]:
        lines += ["", f"No image of {len(missing):,} of the model's classes: {name_some(missing)}"]
    return "\n".join(lines)


def _sum_up(found) -> str:
    top1, top5 = (100 * hits / found.images for hits in (found.top1, found.top5))
    return f"{found.images:,} images: top1 {top1:.2f}, top5 {top5:.2f}"


def draw(found, classes: list[str], worst: int) -> tuple:
    """The figure, and what it shows: a square for each pair, the darker the larger its share.

    One hue, from light to dark, is read by everybody alike. The scale is that of square roots:
    what is rare would else be as white as what never happens.
    """
    from matplotlib.colors import PowerNorm

    chosen = found.most_mixed(min(worst, _MOST_DRAWN))
    shares = [
        [100 * found.rows[true][guess] / max(1, found.rows[true].total()) for guess in chosen]
        for true in chosen
    ]
    numbered = len(chosen) <= _MOST_WITH_NUMBERS
    side = max(3.5, len(chosen) * (0.42 if numbered else 0.15))
    figure, axes = output.import_pyplot().subplots(
        figsize=(side + 2.5, side + 1.5), layout="compressed"
    )
    norm = PowerNorm(0.5, 0, 100)
    image = axes.imshow(shares, "Blues", norm=norm, interpolation="nearest")
    for y, true in enumerate(chosen if numbered else []):
        for x, guess in enumerate(chosen):
            if count := found.rows[true][guess]:
                colour = "white" if norm(shares[y][x]) > 0.7 else "black"
                axes.text(x, y, count, ha="center", va="center", fontsize=7, color=colour)
    names = [_shorten(classes[i]) for i in chosen]
    style = {"fontsize": 9 if numbered else 6, "parse_math": False}  # a name may look like one
    axes.set_xticks(range(len(names)), names, rotation=90, **style)
    axes.set_yticks(range(len(names)), names, **style)
    axes.set(xlabel="guessed", ylabel="true")
    bar = figure.colorbar(image, ax=axes, ticks=[0, 1, 5, 10, 25, 50, 75, 100], shrink=0.8)
    bar.set_label("% of the images of the class")
    said = f"\n{_sum_up(found)}"
    if len(chosen) < len(classes):
        said += f"\n{len(chosen)} of {len(classes):,} classes: first those that are mixed up most"
    return figure, said


def _shorten(name: str) -> str:
    name = output.spell(on_a_line(name))
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
