"""What fairseq's JSON logs say of a training."""

import json
from pathlib import Path

from resmlp_mt.data.text import read_lines
from resmlp_mt.errors import UserError


def read_log(path: Path, metric: str) -> tuple[list, list]:
    """The (update, value) points of training and of validation in a log.

    A training that was stopped does the updates since its last checkpoint again. The later ones
    count.

    Raises:
        UserError: If the file has none, or something else in the place of a number.
    """
    train, valid = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:  # other lines of the log
            continue
        try:
            if f"valid_{metric}" in entry:
                _add(valid, int(entry["valid_num_updates"]), float(entry[f"valid_{metric}"]))
            elif metric in entry and "num_updates" in entry:
                _add(train, int(entry["num_updates"]), float(entry[metric]))
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path}, line {number}: {metric} or its update is no number") from None
    if not train and not valid:
        raise UserError(f"{path}: no {metric} in it; train with --log-format json --log-file FILE")
    return train, valid


def _add(points: list[tuple[int, float]], update: int, value: float) -> None:
    while points and points[-1][0] >= update:
        points.pop()
    points.append((update, value))
