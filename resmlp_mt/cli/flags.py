"""Flags that several commands have."""

import argparse


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", default="auto", help="auto, cpu, cuda ... (default: %(default)s)"
    )


def check_positive(arguments: argparse.Namespace, *names: str) -> None:
    """Check numbers, or lists of numbers, that count something.

    Raises:
        UserError: If one of them is below 1.
    """
    from resmlp_mt.errors import UserError

    for name in names:
        value = getattr(arguments, name)
        if min(value if isinstance(value, list) else [value]) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1")
