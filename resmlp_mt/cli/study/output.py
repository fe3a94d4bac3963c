"""Tables and pictures that studies write. matplotlib is imported when it draws: that takes long."""

import argparse
import csv
import os
import sys
from collections.abc import Iterable
from pathlib import Path


def add_picture(parser: argparse.ArgumentParser, **options) -> None:
    """Add --out, a picture, with more that `add_argument` takes."""
    parser.add_argument("--out", type=_read_picture, metavar="PNG|PDF|SVG", **options)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add --csv, a table."""
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the figures as CSV")


def prepare_output(arguments: argparse.Namespace, *read: str | Path | None) -> None:
    """Refuse --out and --csv that cannot be written, before the work.

    `read` are files and folders that the command reads beside its model, if any.

    Raises:
        UserError: If one cannot be made, is read, or is the other.
    """
    from resmlp_mt.checkpoints.checksum import list_files
    from resmlp_mt.errors import UserError
    from resmlp_mt.files.output import prepare_target, refuse_overwriting

    targets = [getattr(arguments, name, None) for name in ("csv", "out")]
    targets = [path for path in targets if path]
    for path in targets:
        prepare_target(path)
    if targets and hasattr(arguments, "model"):
        read = (*read, *list_files(arguments.model))
    for path in targets:
        refuse_overwriting(path, filter(None, read))
    if len({path.resolve() for path in targets}) < len(targets):
        raise UserError(f"--csv and --out are both {targets[1]}: give them two names")


def write_table(out: Path, columns: list[str], rows: Iterable[Iterable]) -> None:
    """Write a table whole or not at all, and say so on standard error."""
    from resmlp_mt.files.output import whole_file

    # Names of files may be no text.
    options = {"newline": "", "encoding": "utf-8", "errors": "backslashreplace"}
    with whole_file(out) as path, path.open("w", **options) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow(f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row)
    print(f"wrote {out}", file=sys.stderr)


def import_pyplot():
    """matplotlib's pyplot, which then draws to files alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure, out: Path, model: str | None = None, said: str = "", dpi: int = 150) -> None:
    """Write a picture whole or not at all, and say so on standard error.

    Args:
        figure: Of matplotlib.
        out: The file. A name without an ending, as of a pipe, is of a PNG.
        model: Named above the picture by its file and folder.
        said: What stands behind that.
        dpi: Dots per inch.
    """
    from resmlp_mt.files.output import whole_file

    if model is not None:  # whose name may look like a formula
        title = spell("/".join(Path(model).parts[-2:])) + said
        figure.suptitle(title, parse_math=False, fontsize=10)
    with whole_file(out) as path:
        figure.savefig(path, format=_name_format(out), dpi=dpi, bbox_inches="tight")
    print(f"wrote {out}", file=sys.stderr)


def spell(name: str) -> str:
    """The name of a file as text; its bytes that are none are spelt out."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _read_picture(text: str) -> Path:
    if _name_format(path := Path(text)) not in ("png", "pdf", "svg"):
        raise argparse.ArgumentTypeError(f"{text}: let its name end in .png, .pdf or .svg")
    return path


def _name_format(path: Path) -> str:
    return path.suffix[1:].lower() or "png"
