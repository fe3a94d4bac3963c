"""Pictures with the classes that a model finds in them; those that cannot be read are named."""

import argparse
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from resmlp_mt.cli.flags import positive
from resmlp_mt.errors import UserError, on_a_line

T = TypeVar("T")


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """Add --batch-size."""
    parser.add_argument("--batch-size", type=positive, default=32, help="pictures at once")


def classify_each(
    items: Sequence[T],
    open_image: Callable[[T], object],
    classify: Callable[[Iterator], Iterator[list]],
    command: str,
    broken: list[T],
    quiet: bool | None = None,
) -> Iterator[tuple[T, list]]:
    """Yield each item with its classes, as the pictures are read, under a bar of progress.

    Args:
        items: One for each picture.
        open_image: Item -> image; a `UserError` or an `OSError` if it cannot be read.
        classify: Images -> the predictions for each, as `Classifier.classify` yields them.
        command: The name of bar and messages.
        broken: Those that cannot be read are named on standard error, and put in here.
        quiet: Show no bar; None: if standard error is no terminal.
    """
    from tqdm import tqdm

    readable: deque[T] = deque()  # whose classes are not known yet

    def read() -> Iterator:
        for item in tqdm(items, desc=command, unit="image", disable=quiet, leave=False):
            try:
                image = open_image(item)
            except (UserError, OSError) as error:
                broken.append(item)
                tqdm.write(f"resmlp-mt {command}: {on_a_line(str(error))}", file=sys.stderr)
                continue
            readable.append(item)
            yield image

    for best in classify(read()):
        yield readable.popleft(), best
