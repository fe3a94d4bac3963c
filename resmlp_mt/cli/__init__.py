"""The console command `resmlp-mt`: one small module a subcommand."""

import argparse
import errno
import importlib
import logging
import os
import signal
import sys
import warnings

from resmlp_mt import __version__
from resmlp_mt.cli import passthrough, starting
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


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="resmlp-mt",
        description="Machine translation and image classification with ResMLP: a learned matrix "
        "over positions in place of self-attention. A fairseq plugin.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
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


def main() -> int:
    """Run a subcommand; a user's mistake is one message and status 2."""
    command, *rest = sys.argv[1:] or [""]
    starting.start()
    try:
        if command in passthrough.PROGRAMS:
            passthrough.run_program(command, rest)
        else:
            arguments = build_parser().parse_args()
            # Importing fairseq leaves the root logger at DEBUG.
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            warnings.formatwarning = lambda message, *_, **__: f"resmlp-mt {command}: {message}\n"
            # Exit as after an error, so that half-written files are removed.
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
            status = arguments.run(arguments) or 0
            sys.stdout.flush()
            return status
    except UserError as error:
        return _fail(command, str(error))
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "fairseq"):
            raise
        return _fail(command, f"{error.name} is not installed; resmlp-mt doctor says what is")
    except KeyboardInterrupt:
        return _fail(command, "interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        _drop_output()  # its reader has gone, as with `| head`: nothing to say
        return 128 + signal.SIGPIPE
    except OSError as error:
        _drop_output()
        if error.errno == errno.EBADF:
            return _fail(command, "standard input or output is closed")
        if error.errno not in (
            errno.ENOSPC,
            errno.EACCES,
            errno.EROFS,
            errno.EDQUOT,
            errno.EFBIG,
            errno.EISDIR,
            errno.ENOTDIR,
            errno.ENAMETOOLONG,
            errno.ELOOP,
        ):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _fail(command, f"{where}{error.strerror}")
    return 0


def _drop_output() -> None:
    """Keep Python from failing when it flushes stdout at its exit and cannot write."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(command: str, message: str, status: int = 2) -> int:
    print(f"resmlp-mt {command}: {message}", file=sys.stderr)
    return status
