"""fairseq's own commands with `--user-dir` filled in; all else is passed through."""

import argparse
import importlib
import re
import sys
from pathlib import Path

from resmlp_mt.errors import UserError, explain

# name: what the help says of it. Each is a module of fairseq_cli.
PROGRAMS = {
    "train": "fairseq-train with this plugin",
    "generate": "fairseq-generate with this plugin: translate a binarized set and score it",
    "interactive": "fairseq-interactive with this plugin",
    "validate": "fairseq-validate with this plugin",
}


def run_program(program: str, arguments: list[str]) -> None:
    """Run a fairseq command in this process.

    Args:
        program: A name in PROGRAMS.
        arguments: Its command line.

    Raises:
        UserError: For the mistakes that fairseq would answer with a traceback.
    """
    import torch  # noqa: F401  (fairseq_cli reads sys.argv only after its imports)

    if "--user-dir" not in arguments:
        arguments = ["--user-dir", str(Path(__file__).parents[1]), *arguments]
    if program == "validate" and "--task" not in arguments:
        # fairseq-validate alone asks for the task that its checkpoint names.
        arguments = ["--task", _task_of(arguments), *arguments]
    sys.argv = [f"fairseq-{program}", *arguments]
    module = importlib.import_module(f"fairseq_cli.{program}")
    try:
        module.cli_main()
    except FileNotFoundError as error:
        raise UserError(str(error)) from None
    except Exception as error:
        if advice := _explain(error, program):
            raise UserError(advice) from None
        raise


def _task_of(arguments: list[str]) -> str:
    """The task of the checkpoint that --path names."""
    from fairseq import checkpoint_utils

    from resmlp_mt.data.checkpoints import find_checkpoint

    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--path")
    parser.add_argument("-h", "--help", action="store_true")
    known, _ = parser.parse_known_args(arguments)
    if known.help:
        return "translation"
    if (path := known.path) is None:
        raise UserError("--path CHECKPOINT is missing: what shall be validated?")
    return checkpoint_utils.load_checkpoint_to_cpu(str(find_checkpoint(path)))["cfg"].task._name


def _explain(error: Exception, program: str) -> str | None:
    """What to tell a user of an error that fairseq or our model raised; None if it is a bug."""
    text = str(error)
    if size := re.search(
        r"Size of sample #(\d+) is invalid \(=(.+?)\) since max_positions=(.+?),? skip", text
    ):
        among = " of the buffer" if program == "interactive" else ""
        return (
            f"line {int(size.group(1)) + 1}{among} has {size.group(2)} tokens (source, target), "
            f"the model takes {size.group(3)}; shorten it, or leave such lines out with "
            "--skip-invalid-size-inputs-valid-test"
        )
    return explain(error)
