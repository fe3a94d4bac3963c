"""Look into a model, its features and its training; each study has a --help of its own."""

import argparse

from resmlp_mt.cli.parser import add_commands

STUDIES = ["mixing", "sparsity", "pruning", "probe", "confusion", "curves"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, each with flags of its own."""
    add_commands(parser, __name__, STUDIES, metavar="STUDY", required=True)
