"""Kinds of numbers, flags that several commands have, and how help shows them."""

import argparse
from pathlib import Path

_MOST_THREADS = 4096  # more than a machine has, where libraries end the process


class HelpFormatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the lines of a description, and adds the defaults of flags that have one."""

    def _get_help_string(self, action: argparse.Action) -> str:
        has_none = action.default in (None, "", []) or action.default is False
        return action.help if has_none else super()._get_help_string(action)


def positive(text: str) -> int:
    """A whole number from 1 on, for argparse."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def thread_count(text: str) -> int:
    """A number of threads, for argparse."""
    if (number := positive(text)) > _MOST_THREADS:
        raise argparse.ArgumentTypeError(f"must be at most {_MOST_THREADS:,}, not {number:,}")
    return number


def share(text: str) -> float:
    """A number above 0, and 1 at most, for argparse."""
    if not 0 < (number := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share between 0 and 1")
    return number


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
    from resmlp_mt.extras import import_with_fairseq

    if arguments.user_dir:
        plugins = import_with_fairseq("resmlp_mt.compat.plugins", "--user-dir")
        plugins.import_plugin(arguments.user_dir)
