"""Results as rows: printed, and appended to a CSV file with what they were measured on."""

import csv
import datetime
import fcntl
import io
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from races.rounds import Result
from resmlp_mt.engines.threads import count_cores
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import naming, prepare_target

_CPUINFO = Path("/proc/cpuinfo")  # of Linux
_PACKAGES = ("torch", "ve-fairseq", "onnxruntime", "ctranslate2", "timm")


def make_rows(results: list[Result], rounds: int, threads: int, **described) -> list[dict]:
    """One row a rival and case.

    Args:
        results: From `race`.
        rounds, threads: As for `race`.
        **described: More columns, the same in all rows.
    """
    here = describe_here()
    return [
        {
            "rival": result.rival,
            **described,
            **vars(result.case),
            **{name: _round(value) for name, value in result.figures.items()},
            "ratio": f"{result.ratio:.2f}",
            "least": f"{result.spread[0]:.2f}",
            "most": f"{result.spread[1]:.2f}",
            "rounds": rounds,
            "threads": threads,
            **here,
        }
        for result in results
    ]


def print_table(rows: list[dict], measured: Iterable[str] = ()) -> None:
    """Print the rows as a table, without what is the same in all.

    Args:
        rows: As `make_rows` made them.
        measured: Columns that stay if they are the same, which is a result.
    """
    stays = {"rival", "ratio", *(name for name in measured if rows[0][name])}
    names = [name for name in rows[0] if name in stays or len({row[name] for row in rows}) > 1]
    lines = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        print(line[0].ljust(widths[0]), *cells, sep="  ")


def check_table(path: Path, columns: Iterable[str] = ()) -> None:
    """Refuse a file that rows can never be appended to, before they are measured.

    Args:
        path: The file, which need not be there.
        columns: Those of the rows, where they are known.

    Raises:
        UserError: If it cannot be made, or has something else in it than rows of such a race, or
            rows of an older version, which had other figures or named no commit.
    """
    if not (target := prepare_target(path)).exists():
        return
    if not target.is_file():
        raise UserError(f"{path} is no file that rows can be appended to; name another")
    found = path.read_bytes().partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
    if found == [""]:
        return
    if not {"rival", "commit"} <= {*found}:
        raise UserError(f"{path} has other columns than those of a race; name another file")
    if columns and (said := _compare(found, columns)):
        raise UserError(f"{path} {said}; it is of another race, so name another file")


def append_rows(path: Path, rows: list[dict], columns: Iterable[str] = ()) -> list[str]:
    """Append all rows to a CSV file, or nothing; returns its columns.

    Args:
        path: The file; a new one is begun.
        rows: With values of all columns.
        columns: The order of those in a new file; that of the rows where nothing is given.

    Raises:
        UserError: If the file has other columns.
        OSError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), open(path, "ab+", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # another process may append at this moment
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        before = stream.read().decode("utf-8", "replace")
        columns = next(csv.reader(io.StringIO(before)), list(columns or rows[0]))
        for row in rows:
            if said := _compare(columns, row):
                raise UserError(f"{path}: {said}; nothing was added")
        new = io.StringIO()
        writer = csv.DictWriter(new, columns, lineterminator="\n")
        if not before:
            writer.writeheader()
        writer.writerows(rows)
        line_end = "\n" if before and not before.endswith("\n") else ""
        rest = (line_end + new.getvalue()).encode()
        try:
            while rest:
                rest = rest[stream.write(rest) :]
        except BaseException:
            stream.truncate(size)
            raise
    return columns


def _compare(table: Iterable[str], row: Iterable[str]) -> str:
    """The fault that keeps a row out of a table, by the names of their columns; "" for none."""
    table, row = list(table), list(row)
    if missing := [name for name in row if name not in table]:
        return f"has no column {', '.join(missing)}"
    if needed := [name for name in table if name not in row]:
        return f"needs a value of {', '.join(needed)}"
    return ""


def describe_ratios(ratios: Sequence[float]) -> dict[str, str]:
    """The median of a rival's ratios over the rounds, and their span."""
    return {
        "ratio": f"{statistics.median(ratios):.2f}",
        "least": f"{min(ratios):.2f}",
        "most": f"{max(ratios):.2f}",
    }


def describe_here() -> dict[str, str]:
    """On what rows were measured, with which packages, when, and of which code."""
    return {"versions": describe_versions(), **describe_origin(describe_machine())}


def describe_origin(machine: str) -> dict[str, str]:
    """Where rows come from: the machine, the day, and the commit of this code.

    Args:
        machine: As `describe_machine` or `describe_processor` says it.
    """
    return {
        "machine": machine,
        "date": datetime.date.today().isoformat(),
        "commit": describe_commit(),
    }


def describe_machine() -> str:
    """The GPU if there is one, the processor and its cores."""
    import torch  # takes seconds, and many scripts are here for the commit alone

    gpu = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    return ", ".join([*gpu, _name_processor(), f"{count_cores()} cores"])


def describe_processor(threads: int | str) -> str:
    """The processor, and how many threads of it were at work, "all" where nothing said it."""
    return f"{_name_processor()}, {threads} thread{'s' * (str(threads) != '1')}"


def describe_commit() -> str:
    """The commit of this code, "-dirty" where it was changed; COMMIT says it for a mere copy.

    It is empty where neither is there, as in an installed package.
    """
    if (commit := os.environ.get("COMMIT", "")) or not shutil.which("git"):
        return commit
    # An environment within somebody's repository is none of its files.
    describe = ["describe", "--always", "--dirty", "--exclude", "*"]
    for command in (["ls-files", "--error-unmatch", __file__], describe):
        call = ["git", "-C", str(Path(__file__).parent), *command]
        found = subprocess.run(call, capture_output=True, text=True)
        if found.returncode:
            return ""
    return found.stdout.strip()


def describe_command(table: Path) -> str:
    """The command of this process, which measures rows again.

    Args:
        table: The file that it writes to. Of its path the name alone is told.
    """
    words = [table.name if word == str(table) else word for word in sys.argv[1:]]
    return shlex.join(["python", Path(sys.argv[0]).name, *words])


def describe_versions() -> str:
    """The packages that decide about speed, with their versions."""
    return " ".join(filter(None, map(_find_version, _PACKAGES)))


def _name_processor() -> str:
    lines = _CPUINFO.read_text().splitlines() if _CPUINFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _round(value: float) -> str:
    if value != value:  # not measured in this case
        return ""
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def _find_version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
