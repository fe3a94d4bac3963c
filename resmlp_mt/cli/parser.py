"""The flags of `resmlp-mt` and of its commands."""

import argparse
import importlib
import sys
from difflib import get_close_matches

from resmlp_mt import __version__
from resmlp_mt.cli import passthrough

# name: what the help says of it. The module of that name in this folder (with _ for -) has
# add_arguments(parser) and run(arguments). The commands of passthrough.py stand beside them.
COMMANDS = {
    "prepare": "raw parallel text -> SentencePiece model, dictionary, binarized data",
    "translate": "raw text in, raw text out",
    "classify": "name what is in pictures",
    "confusion": "which classes a classifier mixes up, on pictures whose classes are known",
    "score": "SacreBLEU, chrF and TER with their signatures",
    "average": "average checkpoints, the last or the best",
    "pack": "a checkpoint -> a folder with all that a model needs",
    "serve": "translate for others over HTTP, and on a page",
    "export": "a translator or classifier -> a folder that is faster on a CPU",
    "benchmark": "speed of training and translation, against what else there is",
    "probe": "k-NN and linear classification on a model's frozen features",
    "import-weights": "published ResMLP weights for images -> a folder",
    "export-weights": "a classifier -> a state dict with the official or timm's keys",
    "curves": "draw the loss of training runs",
    "plot-mixing": "draw the mixing matrices of a model",
    "sparsity": "how many weights are close to zero, layer by layer",
    "doctor": "what is installed, and what is wrong with it",
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse shows all flags first."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' shows what it takes\n")


class _Command(_Parser):
    """Refuses flags that it has not itself, where argparse lets the whole command do it."""

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._suggest(unknown)}")
        return found, unknown

    def _suggest(self, unknown: list[str]) -> str:
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        near = [get_close_matches(flag, self._option_string_actions, 1, 0.8) for flag in flags]
        return f" (did you mean {', '.join(sum(near, []))}?)" if any(near) else ""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _Parser(
        prog="resmlp-mt",
        description="Machine translation and image classification with ResMLP: a learned matrix "
        "over positions in place of self-attention. A fairseq plugin.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help(sys.stderr) or 2)
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Command)
    for name, text in COMMANDS.items():
        module = importlib.import_module(f"resmlp_mt.cli.{name.replace('-', '_')}")
        command = commands.add_parser(
            name,
            help=text,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    for name, text in passthrough.PROGRAMS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser
