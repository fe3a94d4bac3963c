"""Append what a training run came to as a row of a results.csv, or as several.

Reads the run's own figures as JSON from standard input, an object or a list of them; adds what
stands in its log, if it has one, and when and where it was recorded. The columns of a file that
exists stay as they are: a row with others, or without all of them, is refused. All rows are added
or none. COMMIT=... says the commit where git does not know it.

    python scripts/translation_figures.py RUN ... |
        python scripts/append_row.py results.csv --log RUN/train.log

Of several logs, where one training went on from another, the seconds are added up.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[1] / "examples/benchmarks"))

from races.report import append_rows, describe_origin, describe_processor  # noqa: E402


def main() -> None:
    """Append and show the rows; status 2 where there is none to append."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--log", type=Path, nargs="+", default=[], help="what fairseq-train wrote")
    arguments = parser.parse_args()
    try:
        rows = build_rows(sys.stdin.read(), arguments.log)
        columns = append_rows(arguments.results, rows)
    except UserError as error:
        parser.exit(2, f"append_row.py: {error}\n")
    except OSError as error:
        place = error.filename or arguments.results
        parser.exit(2, f"append_row.py: {place}: {error.strerror}; nothing was added\n")
    for row in rows:
        print(json.dumps({name: str(row[name]) for name in columns}, indent=1))


def build_rows(figures: str, logs: list[Path]) -> list[dict]:
    """The figures with those of the logs, and when and where they were recorded.

    Raises:
        UserError: If the figures or a log are not what they should be, or a figure is missing.
    """
    try:
        found = json.loads(figures)
    except ValueError as error:
        raise UserError(f"standard input is no JSON: {error}") from None
    rows = found if isinstance(found, list) else [found]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise UserError("standard input has no figures by their names")
    texts = ["\n".join(read_lines(path)) for path in logs]
    about = _read_logs(logs, texts) if logs else {}
    about |= describe_origin(_name_machine("\n".join(texts)))
    rows = [row | about for row in rows]
    if missing := dict.fromkeys(n for row in rows for n, value in row.items() if value is None):
        raise UserError(f"no value of {', '.join(missing)}: name the training's log with --log")
    return rows


def _read_logs(paths: list[Path], logs: list[str]) -> dict:
    read = [_read_log(path, log) for path, log in zip(paths, logs, strict=True)]
    seconds = [figures["train_seconds"] for figures in read]
    return {
        "parameters": read[-1]["parameters"],
        "train_seconds": "" if "" in seconds else sum(seconds),
    }


def _read_log(path: Path, log: str) -> dict:
    sizes = re.findall(r"num\. shared model params: ([\d,]+)", log)
    if not sizes:
        raise UserError(f"{path}: no log of a training: no number of parameters in it")
    seconds = re.findall(r"done training in ([\d.]+) seconds", log)
    if len(sizes) > 1:
        # Of a training that was stopped: what the updates of each epoch took, each epoch once.
        epochs = dict(re.findall(r'"epoch": (\d+).*"train_train_wall": "([\d.]+)"', log))
        seconds = [sum(map(float, epochs.values()))] if epochs else []
    return {
        "parameters": int(sizes[-1].replace(",", "")),
        "train_seconds": round(float(seconds[-1])) if seconds else "",
    }


def _name_machine(log: str) -> str:
    if '"gb_free"' in log:  # the memory of a GPU, whose name is not in the log
        import torch  # takes seconds, and few trainings have a GPU

        name = torch.cuda.get_device_name() if torch.cuda.is_available() else "GPU"
        return f"{re.findall(r'training on (.+) devices', log)[-1]} x {name}"
    return describe_processor(os.environ.get("OMP_NUM_THREADS", "all"))


if __name__ == "__main__":
    main()
