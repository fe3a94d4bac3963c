"""Flags that several commands have."""

import argparse
from pathlib import Path

from resmlp_mt.errors import UserError, name_flag

_MOST_THREADS = 4096


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", default="auto", help="auto, cpu, cuda ... (default: %(default)s)"
    )


def add_user_dir(parser: argparse.ArgumentParser) -> None:
    """Add --user-dir."""
    parser.add_argument(
        "--user-dir",
        type=Path,
        metavar="DIR",
        help="the fairseq plugin of a checkpoint whose architecture is of another one than this",
    )


def import_user_dir(arguments: argparse.Namespace) -> None:
    """Import the plugin that --user-dir names, if it names one.

    Raises:
        UserError: If there is none, or fairseq is missing.
    """
    from resmlp_mt.extras import import_with_fairseq

    if arguments.user_dir:
        plugins = import_with_fairseq("resmlp_mt.compat.plugins", "--user-dir")
        plugins.import_plugin(arguments.user_dir)


def add_kind(parser, flag: str, kinds: tuple[str, str], **options) -> None:
    """Add a flag that one of two words may follow; the first stands where none follows."""

    def read(text: str) -> str:
        if text not in kinds:
            raise argparse.ArgumentTypeError(
                f"{text}: neither {kinds[0]} nor {kinds[1]}; put sentences before {flag}"
            )
        return text

    metavar = f"{{{','.join(kinds)}}}"
    parser.add_argument(flag, nargs="?", const=kinds[0], type=read, metavar=metavar, **options)


def check_threads(arguments: argparse.Namespace) -> None:
    """Check --threads, which may be left out.

    Raises:
        UserError: If it is below 1, or more than a machine has. Libraries end the process there.
    """
    check_positive(arguments, "threads")
    if (arguments.threads or 1) > _MOST_THREADS:
        raise UserError(f"--threads must be at most {_MOST_THREADS:,}, not {arguments.threads:,}")


def check_positive(arguments: argparse.Namespace, *names: str) -> None:
    """Check numbers, or lists of numbers, that count something; those that are left out pass.

    Raises:
        UserError: If one of them is below 1.
    """
    for name in names:
        value = getattr(arguments, name)
        if value is not None and min(value if isinstance(value, list) else [value]) < 1:
            raise UserError(f"{name_flag(name)} must be at least 1")
