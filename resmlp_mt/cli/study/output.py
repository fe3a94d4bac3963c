"""Pictures that studies draw. matplotlib is imported when it draws: that takes long."""

import argparse
import os
import sys
from pathlib import Path


def add_picture(parser: argparse.ArgumentParser, **options) -> None:
    """Add --out, a picture, with more that `add_argument` takes."""
    parser.add_argument("--out", type=_read_picture, metavar="PNG|PDF|SVG", **options)


def add_table(parser: argparse.ArgumentParser, said: str = "write the figures as CSV") -> None:
    """Add --csv, a table."""
    parser.add_argument("--csv", type=Path, metavar="FILE", help=said)


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


def import_pyplot():
    """matplotlib's pyplot, which then draws to files alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure, out: Path, model: str | None = None, said: str = "", dpi: int = 150) -> None:
    """Write a picture whole or not at all, and say so on standard error.

    A name without an ending, as of a pipe, is of a PNG. The model is named above it, then `said`.
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
