"""Name what is in pictures.

Takes files, folders with all that is in them, and quoted globs; - is one picture on standard input.
Prints a line for each picture: its path, then classes with their probabilities, the best first,
with tabs between them. Control characters in names, such as newlines, are escaped; with --json
names stay as they are.

  resmlp-mt classify cifar10 photo.jpg pictures/
  resmlp-mt classify checkpoints/mine 'pictures/*.png' --topk 1 --json
  cat photo.jpg | resmlp-mt classify cifar10 -
"""

import argparse
import glob
import json
import sys
from functools import partial
from pathlib import Path

from resmlp_mt.cli.flags import add_device, add_model, positive
from resmlp_mt.cli.pictures import add_batch_size, classify_each
from resmlp_mt.errors import UserError, on_a_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="files, folders, globs, or -")
    parser.add_argument("--topk", type=positive, default=5, metavar="K", help="classes named")
    said = 'print a list of {"path", "predictions": [{"index", "class", "probability"}]}'
    parser.add_argument("--json", action="store_true", help=said)
    add_batch_size(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Classify all pictures that can be read; the others are named, and are an error."""
    from resmlp_mt.data.pixels import decode
    from resmlp_mt.engines.classifier import Classifier

    paths = _find_images(arguments.images)
    classifier = Classifier.from_pretrained(arguments.model, arguments.device)

    def open_image(path: Path | str):
        source = sys.stdin.buffer if path == "-" else path
        return decode(source, classifier.cut.in_chans, str(path))

    entries, broken = [], []
    classify = partial(classifier.classify, topk=arguments.topk, batch_size=arguments.batch_size)
    quiet = True if len(paths) < 2 or sys.stdout.isatty() else None
    for path, best in classify_each(paths, open_image, classify, "classify", broken, quiet):
        path = str(path)
        if arguments.json:
            found = [
                {"index": g.index, "class": g.name, "probability": g.probability} for g in best
            ]
            entries.append({"path": path, "predictions": found})
        else:
            guesses = [f"{guess.name} {guess.probability:.1%}" for guess in best]
            print("\t".join(map(on_a_line, [path, *guesses])), flush=True)
    if arguments.json:  # which is in UTF-8 wherever it goes
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        print(json.dumps(entries, indent=1, ensure_ascii=False))
    if broken:
        raise UserError(f"{len(broken)} of {len(paths)} images could not be read")


def _find_images(patterns: list[str]) -> list[Path | str]:
    """The pictures that files, folders and globs stand for, each once; "-" stays as it is."""
    from resmlp_mt.data.image_folder import SUFFIXES, walk, warn_of_unread

    def list_folder(folder: Path) -> list[Path]:
        names = list(walk(str(folder)))
        warn_of_unread(names, str(folder))
        return sorted(folder / name for name in names if name.lower().endswith(SUFFIXES))

    found = {}
    for pattern in patterns:
        path = Path(pattern)
        if pattern == "-":
            images = [pattern]
        elif pattern and path.exists():  # a pipe too
            images = list_folder(path) if path.is_dir() else [path]
        else:
            matches = list(map(Path, glob.glob(pattern, recursive=True)))
            images = {path for path in matches if path.name.lower().endswith(SUFFIXES)}
            images = {path for path in images if not path.is_dir()}
            images = sorted(images.union(*map(list_folder, filter(Path.is_dir, matches))))
        if not images:
            raise UserError(f"{pattern}: no such image, and no image in it")
        found |= dict.fromkeys(images)
    return list(found)
