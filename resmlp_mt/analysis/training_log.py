"""Points of a training from fairseq's JSON logs."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError

Entry = tuple[int, dict]  # the number of a line, and what it says
_COUNTERS = ("epoch", "update", "num_updates")  # where in the training an entry is


def choose_metric(logs: Iterable[Sequence[Entry]]) -> str:
    """The metric to draw of logs together: nll_loss, or loss where one of them has that alone.

    Models of images have no nll_loss, and neither have trainings by fairseq's cross_entropy.

    `logs` are as of `read_entries`.
    """
    for entries in logs:
        names = {name for _, entry in entries for name in _name_metrics(entry)}
        if "loss" in names and "nll_loss" not in names:
            return "loss"
    return "nll_loss"


def read_log(path: Path, metric: str, entries: Sequence[Entry] | None = None) -> tuple[list, list]:
    """The (update, value) points of training and of validation in a log.

    `entries` are as of `read_entries`. A training that was stopped does the updates since its last
    checkpoint again. The later ones count.

    Raises:
        UserError: If the file has no points, or something else in the place of a number.
    """
    train, valid, names = [], [], {}
    for number, entry in read_entries(path) if entries is None else entries:
        names |= dict.fromkeys(_name_metrics(entry))
        try:
            if f"valid_{metric}" in entry:
                _add(valid, int(entry["valid_num_updates"]), float(entry[f"valid_{metric}"]))
            elif metric in entry and "num_updates" in entry:
                _add(train, int(entry["num_updates"]), float(entry[metric]))
        except (KeyError, OverflowError, TypeError, ValueError):
            raise UserError(f"{path}, line {number}: {metric} or its update is no number") from None
    if not train and not valid:
        advice = "train with --log-format json --log-file FILE"
        if names:
            advice = f"it has {', '.join(names)}"
        raise UserError(f"{path}: no {metric} in it; {advice}")
    return train, valid


def read_entries(path: Path) -> list[Entry]:
    """The entries of a log, with the numbers of their lines."""
    found = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            entry = json.loads(line[line.index("{") :])
        except (RecursionError, ValueError):  # other lines of the log
            continue
        found.append((number, entry))
    return found


def _name_metrics(entry: dict) -> list[str]:
    """The metrics in an entry of an update or of a validation, as --metric takes them."""
    if "num_updates" not in entry:
        entry = [name.removeprefix("valid_") for name in entry if name.startswith("valid_")]
    return [name for name in entry if name not in _COUNTERS]


def _add(points: list[tuple[int, float]], update: int, value: float) -> None:
    while points and points[-1][0] >= update:
        points.pop()
    points.append((update, value))
