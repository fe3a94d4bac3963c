"""Look into a model, its features and its training; each study has a --help of its own."""

import argparse

from resmlp_mt.cli.parser import add_commands

STUDIES = {
    "mixing": "draw the mixing matrices of a model",
    "sparsity": "how many weights are close to zero, layer by layer",
    "pruning": "what a model scores without its small weights",
    "probe": "k-NN and linear classification on a model's frozen features",
    "confusion": "which classes a classifier mixes up, on pictures whose classes are known",
    "curves": "draw the loss of training runs",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, each with flags of its own."""
    add_commands(parser, __name__, STUDIES, metavar="STUDY", required=True)
