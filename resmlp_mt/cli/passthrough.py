"""fairseq's own commands with `--user-dir` filled in; all else is passed through."""

import importlib
import os
import sys
from pathlib import Path

from resmlp_mt.cli.hyperrule import apply_hyperrule
from resmlp_mt.compat.messages import explain
from resmlp_mt.errors import UserError

# name: the text for the help. Each is a module of fairseq_cli.
PROGRAMS = {
    "train": "fairseq-train with this plugin",
    "generate": "fairseq-generate with this plugin: translate a binarized set and score it",
    "interactive": "fairseq-interactive with this plugin",
    "validate": "fairseq-validate with this plugin",
}


def run_program(program: str, arguments: list[str]) -> None:
    """Run a command of fairseq, one of PROGRAMS, in this process.

    Raises:
        UserError: For the mistakes that fairseq would answer with a traceback.
    """
    from fairseq import utils

    log_as_fairseq(program)
    if "--user-dir" not in arguments:
        plugin = str(Path(__file__).parents[1])
        arguments = ["--user-dir", plugin, *arguments]
        utils.import_user_module.memo = {plugin}  # imported already; fairseq need not say so
    if program == "train":
        arguments = apply_hyperrule(arguments)
    sys.argv = [f"resmlp-mt {program}", *arguments]
    if program == "interactive":
        sys.argv += _name_subwords(arguments)
    module = importlib.import_module(f"fairseq_cli.{program}")
    try:
        module.cli_main()
    except Exception as error:
        if advice := explain(error, program):
            raise UserError(advice) from None
        raise


def log_as_fairseq(program: str) -> None:
    """Log the dated lines of fairseq-train, where each program of fairseq logs.

    fairseq is imported already, and its speech models have set up another logging.
    """
    import logging

    logging.basicConfig(
        format="%(asctime)s | %(levelname)s | %(name)s | %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
        level=os.environ.get("LOGLEVEL", "INFO").upper(),
        stream=sys.stdout if program == "train" else sys.stderr,
        force=True,
    )


def _name_subwords(arguments: list[str]) -> list[str]:
    """The flags that let fairseq-interactive take raw text; none if the user gives --bpe.

    Without them the words of raw text would be looked up whole, and most become <unk>.
    """
    from fairseq import options

    from resmlp_mt.compat.languages import find_splitter

    flags = options.parse_args_and_arch(options.get_interactive_generation_parser(), arguments)
    model = find_splitter(flags)
    if model is None or flags.bpe:
        return []
    print(f"raw text is split into subwords by {model} (--bpe sentencepiece)", file=sys.stderr)
    return ["--bpe", "sentencepiece", "--sentencepiece-model", str(model)]
