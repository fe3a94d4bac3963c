"""The flags of `resmlp-mt` and of its commands."""

import argparse
import importlib
import sys

from resmlp_mt import __version__
from resmlp_mt.cli import passthrough
from resmlp_mt.cli.flags import HelpFormatter
from resmlp_mt.errors import UserError

# The module of that name in this folder (with _ for -) has add_arguments(parser), run(arguments),
# and a docstring whose first line is the help. The commands of passthrough.py stand beside them.
COMMANDS = """prepare translate classify score average pack export serve study import-weights
    export-weights doctor""".split()
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


def add_commands(parser: argparse.ArgumentParser, package: str, names: list[str], **options):
    """Add the commands that modules in a package have; returns what further ones are added to.

    `options` are those of `add_subparsers`.
    """
    commands = parser.add_subparsers(**options)
    for name in names:
        module = importlib.import_module(f"{package}.{name.replace('-', '_')}")
        said, text = module.__doc__.partition("\n")[0], module.__doc__
        command = commands.add_parser(
            name, help=said, description=text, formatter_class=HelpFormatter
        )
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
