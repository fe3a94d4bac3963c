r"""From a teacher to a fast student, as a configuration says:

    python examples/student/run.py examples/student/captions.toml
    python examples/student/run.py examples/student/captions.toml clean learn

Without steps, all that the configuration has. The same command goes on where it was stopped, and
does nothing twice. docs/student.md explains the tables.
"""

import argparse
import os
import re
import signal
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import steps
from ship import ship

from resmlp_mt.errors import UserError
from resmlp_mt.files.claim import claim_folder

STEPS = {
    "train": steps.train,
    "teach": steps.teach,
    "clean": steps.clean,
    "learn": steps.learn,
    "round": steps.round_,
    "ship": ship,
}
_NEEDED = object()
_LENGTH = {"updates": _NEEDED, "hours": 0, "average": 10}
_LESSON = {"nbest": 1, "best": "", "keep": 1, "references": False}
# What a configuration may say, and what counts where it says nothing.
TABLES = {
    "train": {"model": _NEEDED},
    "teach": {"text": _NEEDED, **_LESSON},
    "clean": {
        "filters": ["identical", "duplicates", "repetitive"],
        "judge": {},
        "drop": 0.05,
    },
    "learn": {
        "prepare": _NEEDED, "train": _NEEDED, **_LENGTH, "seeds": [1], "baseline": "",
    },
    "round": {"train": "", **_LENGTH, "bits": 8},
    "ship": {
        "export": "--int8", "shortlist": False, "preview": False, "tests": _NEEDED, "beam": 5,
        "teacher": {}, "convert": {}, "rounds": 5, "lines": 200,
    },
}  # fmt: skip
_RUN = {"out": _NEEDED, "langs": _NEEDED, "workers": 1, "rows": 1000, "ray": None, "jobs": 1}
_MODEL = {"name": _NEEDED, "data": _NEEDED, "train": _NEEDED, **_LENGTH, "seed": 1}
_TEXT = {"source": _NEEDED, "target": "", "words": [1, 100], "lines": 0, "teacher": {}}


def read_config(path: Path) -> steps.Run:
    """Read a configuration. $NAME in it is of the environment, and $OUT its `out`.

    Raises:
        UserError: If it is broken, says too little, or what is not known.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    given = _expand(path, given, {**os.environ, "OUT": _expand(path, given.get("out"), os.environ)})
    own = {name: value for name, value in given.items() if not isinstance(value, dict)}
    tables = _fill(str(path), own, _RUN)
    tables |= {name: given.get(name, {}) for name in ("data", "teacher")}
    for name, known in TABLES.items():
        if name in given:
            tables[name] = _fill(f"{path}: [{name}]", given[name], known)
    if unknown := set(given) - set(tables):
        raise UserError(f"{path}: what is [{min(unknown)}]? It has {', '.join(TABLES)}")
    for name, inner, known in (("train", "model", _MODEL), ("teach", "text", _TEXT)):
        if name in tables:
            where = f"{path}: [[{name}.{inner}]]"
            if name == "teach":  # a text may say otherwise than the step
                known = known | {each: tables[name].pop(each) for each in _LESSON}
            tables[name][inner] = [_fill(where, each, known) for each in tables[name][inner]]
    for model in tables.get("train", {}).get("model", ()):
        if model["data"] not in tables["data"]:
            raise UserError(f"{path}: {model['name']} learns from [data] {model['data']}: no such")
    return steps.Run(tables, Path(tables["out"]))


def _expand(path: Path, value, names: Mapping[str, str]):
    """A value with all names in its texts, however deep, looked up."""
    if isinstance(value, dict):
        return {name: _expand(path, each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_expand(path, each, names) for each in value]
    if not isinstance(value, str):
        return value

    def look_up(found: re.Match) -> str:
        if found[1] not in names:
            raise UserError(f"{path}: ${found[1]} is not in the environment: set it")
        return names[found[1]]

    return re.sub(r"\$([A-Z_]+)", look_up, value)


def _fill(where: str, given: dict, known: dict) -> dict:
    if unknown := set(given) - set(known):
        raise UserError(f"{where}: what is {min(unknown)}? It may say {', '.join(known)}")
    filled = {**known, **given}
    if missing := [name for name, value in filled.items() if value is _NEEDED]:
        raise UserError(f"{where}: does not say {', '.join(missing)}")
    return filled


def main() -> int:
    """Do the steps; a user's mistake is one message and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, metavar="CONFIG")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if unknown := set(arguments.steps) - set(STEPS):
            raise UserError(f"no step {min(unknown)}; there are {', '.join(STEPS)}")
        run = read_config(arguments.config)
        run.out.mkdir(parents=True, exist_ok=True)
        if not claim_folder(run.out):
            raise UserError(f"{run.out}: another run is at work on it; wait for it, or end it")
        for name in STEPS:
            if name in (arguments.steps or run.tables):
                if name not in run.tables:
                    raise UserError(f"{arguments.config} has no [{name}]")
                STEPS[name](run)
    except UserError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("run.py: interrupted; the same command goes on", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
