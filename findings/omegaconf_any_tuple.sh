#!/usr/bin/env bash
# OmegaConf 2.4.0: a field of type Any whose default is a tuple takes no text any more.
#
# A structured config with `betas: Any = (0.9, 0.999)`, as fairseq's Adam and others have it, is
# given the text "(0.9, 0.98)", as from a command line. One would guess that Any takes anything. In
# 2.3.1 it does: a tuple became a ListConfig, and any value could follow. In 2.4.0 the default makes
# a TupleConfig, and a ValidationError says that str is not a tuple, and of 3 that int is not.
# The same field with the default None takes the text in both.
# Exits with 1 where one of them does otherwise.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/try.py" <<'END'
import sys
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf, ValidationError, __version__


@dataclass
class Adam:
    betas: Any = (0.9, 0.999)
    other: Any = None


def answer(name, value):
    config = OmegaConf.structured(Adam)
    try:
        config[name] = value
    except ValidationError as error:
        return str(error).splitlines()[0]
    return config[name]


found = [answer("betas", "(0.9, 0.98)"), answer("betas", 3), answer("other", "(0.9, 0.98)")]
print(__version__, *found, sep="\n  ")
refused = "Invalid value assigned: {} is not a TupleConfig, ListConfig, list, or tuple."
expected = {
    "2.3.1": ["(0.9, 0.98)", 3, "(0.9, 0.98)"],
    "2.4.0": [refused.format("str"), refused.format("int"), "(0.9, 0.98)"],
}
sys.exit(found != expected[__version__])
END
for version in 2.3.1 2.4.0; do
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install --quiet "omegaconf==$version"
    "$work/venv/bin/python" "$work/try.py"
done
