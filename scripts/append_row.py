"""Append what a training run came to as a row of a results.csv.

Reads the run's own figures as JSON from standard input; adds what stands in its log, if it has one,
and when and where it was recorded. The columns of a file that exists stay as they are.

    python scripts/translation_figures.py RUN ... |
        python scripts/append_row.py results.csv --log RUN/train.log

Of several logs, where one training went on from another, the seconds are added up.
"""

import argparse
import csv
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Append and show the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--log", type=Path, nargs="+", default=[], help="what fairseq-train wrote")
    arguments = parser.parse_args()

    logs = [path.read_text(encoding="utf-8") for path in arguments.log]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    row = json.load(sys.stdin) | (_read_logs(logs) if logs else {})
    row |= {
        "commit": os.environ.get("COMMIT") or commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
        "machine": _name_machine("".join(logs)),
    }
    columns = list(row)
    if arguments.results.exists():
        with open(arguments.results, newline="", encoding="utf-8") as stream:
            columns = next(csv.reader(stream))
    with open(arguments.results, "a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        if stream.tell() == 0:
            writer.writeheader()
        writer.writerow(row)
    print(json.dumps({name: str(row[name]) for name in columns}, indent=1))


def _read_logs(logs: list[str]) -> dict:
    read = [_read_log(log) for log in logs]
    seconds = [figures["train_seconds"] for figures in read]
    return {
        "parameters": read[-1]["parameters"],
        "train_seconds": "" if "" in seconds else sum(seconds),
    }


def _read_log(log: str) -> dict:
    sizes = re.findall(r"num\. shared model params: ([\d,]+)", log)
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
    # fairseq lists the GPUs of all workers.
    if gpus := re.findall(r"^.*rank +\d+: .*; name = (.*\S)", log, re.M):
        return f"{len(gpus)} x {gpus[0]}"
    return f"{platform.machine()} CPU, {os.environ.get('OMP_NUM_THREADS', 'all')} thread"


if __name__ == "__main__":
    main()
