"""Pictures that commands draw with matplotlib, which is slow to import and not always needed."""

import argparse
import os
from pathlib import Path


def add_picture(parser: argparse.ArgumentParser, **options) -> None:
    """Add --out, a picture, with more that `add_argument` takes."""
    parser.add_argument("--out", type=_read_picture, metavar="PNG|PDF|SVG", **options)


def import_pyplot():
    """matplotlib's pyplot, which then draws to files alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def add_title(figure, model: str, said: str, **style) -> None:
    """Write over a picture which model it shows, by its file and folder, and what of it."""
    name = os.fsencode("/".join(Path(model).parts[-2:]))
    title = name.decode(errors="backslashreplace") + said  # bytes that are no text are spelled out
    figure.suptitle(title, parse_math=False, **style)  # a name may look like a formula


def save(figure, out: Path, dpi: int = 150) -> None:
    """Write a picture, whole or not at all."""
    from resmlp_mt.files.output import whole_file

    with whole_file(out) as path:
        figure.savefig(path, format=_name_format(out), dpi=dpi, bbox_inches="tight")


def _read_picture(text: str) -> Path:
    path = Path(text)
    if _name_format(path) not in ("png", "pdf", "svg"):
        raise argparse.ArgumentTypeError(f"{text}: let its name end in .png, .pdf or .svg")
    return path


def _name_format(path: Path) -> str:
    """What its ending names; a name without one, as of a pipe, is of a PNG."""
    return path.suffix[1:].lower() or "png"
