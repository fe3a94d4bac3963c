"""Kinds of numbers, flags that several commands have, and how help shows them."""

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from resmlp_mt.errors import UserError, name_flag


class HelpFormatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the lines of a description, and adds the defaults of flags that have one."""

    def _get_help_string(self, action: argparse.Action) -> str:
        has_none = action.default in (None, "", []) or action.default is False
        return action.help if has_none else super()._get_help_string(action)


def within(least: float, most: float = math.inf, kind: type = int) -> Callable[[str], float]:
    """A `type` for argparse: numbers of a kind from `least` to `most`, both included."""

    def number(text: str) -> float:
        if not least <= (value := kind(text)) <= most:  # nor NaN
            rule = f"at least {least:,}" if most == math.inf else f"from {least:,} to {most:,}"
            raise argparse.ArgumentTypeError(f"must be {rule}, not {text}")
        return value

    return number


positive = within(1)
thread_count = within(1, 4096)  # more than a machine has, where libraries end the process
share = within(1e-6, 1, float)


def refuse_given(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse flags of these names that are given; `why` stands behind the flag's name."""
    for name in names:
        if getattr(arguments, name) not in (None, False, []):
            raise UserError(f"{name_flag(name)} {why}")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add a model as the first argument."""
    parser.add_argument("model", metavar="MODEL", help="a shipped model, folder or checkpoint")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda ...")


def add_user_dir(parser: argparse.ArgumentParser) -> None:
    """Add --user-dir."""
    said = "the fairseq plugin of a checkpoint whose architecture is of another one than this"
    parser.add_argument("--user-dir", type=Path, metavar="DIR", help=said)


def import_user_dir(arguments: argparse.Namespace) -> None:
    """Import the plugin that --user-dir names, if it names one.

    Raises:
        UserError: If there is none, or fairseq is missing.
    """
    from resmlp_mt.extras import import_extra

    if arguments.user_dir:
        plugins = import_extra("resmlp_mt.compat.plugins", "--user-dir")
        plugins.import_plugin(arguments.user_dir)
