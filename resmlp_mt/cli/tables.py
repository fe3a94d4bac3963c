"""Tables that commands print, and those that they write as CSV."""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def align(rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table: its first column stands to the left, the others to the right."""
    rows = list(rows)
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    widths = [max(width + 2, 8) for width in others]
    return [
        f"{head:{first}}" + "".join(map("{:>{}}".format, cells, widths)) for head, *cells in rows
    ]


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
