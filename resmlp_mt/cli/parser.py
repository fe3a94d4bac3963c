"""The flags of `resmlp-mt` and of its commands."""

import argparse
import importlib
import sys

from resmlp_mt import __version__
from resmlp_mt.cli import passthrough
from resmlp_mt.cli.flags import HelpFormatter
from resmlp_mt.errors import UserError

# name: what the help says of it. The module of that name in this folder (with _ for -) has
# add_arguments(parser) and run(arguments). The commands of passthrough.py stand beside them.
COMMANDS = {
    "prepare": "raw parallel text -> SentencePiece model, dictionary, binarized data",
    "translate": "raw text in, raw text out",
    "classify": "name what is in pictures",
    "score": "SacreBLEU, chrF and TER with their signatures",
    "average": "average checkpoints, the last or the best",
    "pack": "a checkpoint -> a folder with all that a model needs",
    "export": "a translator or classifier -> a folder that is faster on a CPU",
    "serve": "translate for others over HTTP, and on a page",
    "study": "look into a model: its matrices, features, confusions, training",
    "import-weights": "published weights for images -> a folder",
    "export-weights": "a classifier -> a state dict with the official or timm's keys",
    "doctor": "what is installed, and what is wrong with it",
}
# Names that studies had in version 0.1; they go in 0.3.
_OLD_NAMES = ("plot-mixing", "sparsity", "probe", "confusion", "curves")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse shows all flags first."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' shows what it takes\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _Parser(
        prog="resmlp-mt",
        description="Machine translation and image classification with ResMLP: a learned matrix "
        "over positions in place of self-attention. A fairseq plugin.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help(sys.stderr) or 2)
    commands = add_commands(parser, "resmlp_mt.cli", COMMANDS, metavar="COMMAND")
    for name, text in passthrough.PROGRAMS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser


def add_commands(parser: argparse.ArgumentParser, package: str, texts: dict[str, str], **options):
    """Add commands, {name: help}, of modules in a package; returns what further ones are added to.

    `options` are those of `add_subparsers`.
    """
    commands = parser.add_subparsers(**options)
    for name, text in texts.items():
        module = importlib.import_module(f"{package}.{name.replace('-', '_')}")
        about = dict(help=text, description=module.__doc__, formatter_class=HelpFormatter)
        command = commands.add_parser(name, **about)
        command.set_defaults(run=getattr(module, "run", None))
        module.add_arguments(command)
    return commands


def rename(words: list[str]) -> list[str]:
    """A command line by today's names; says on standard error what an old one is called now.

    Raises:
        UserError: If its command is in the package no more.
    """
    if words[:1] == ["benchmark"]:
        raise UserError("races are in the repository now: python examples/benchmarks/race.py")
    if not words or words[0] not in _OLD_NAMES:
        return words
    old, *rest = words
    new = ["study", old.removeprefix("plot-")]
    if old == "sparsity" and "--prune" in rest:
        new = ["study", "pruning"]
        rest = ["--threshold" if word == "--prune" else word for word in rest]
    print(f"resmlp-mt {old}: from 0.3 on only 'resmlp-mt {' '.join(new)}'", file=sys.stderr)
    return [*new, *rest]
