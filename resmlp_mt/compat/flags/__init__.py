"""Flags that a user of this package meets: presets, hardware and paths. All others are fairseq's.

What cannot be is refused before anything is loaded, and some flags are put right.
"""

import os
import re
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    FairseqEncoderDecoderModel,
)
from fairseq.utils import split_paths

from resmlp_mt.compat.flags.hardware import check_hardware, mend_hardware, mend_precision
from resmlp_mt.compat.flags.paths import check_data, find_task, mend_paths
from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import is_of_images

# What argparse says of a value that is none of those that a flag takes.
_CHOICE = re.compile(r"argument (--[\w-]+)\S*: invalid choice: '(.*?)' \(")
# Figures of which the best is the highest.
_HIGHEST = ("bleu", "accuracy", "top1", "top5")


@replaces("fairseq.options:parse_args_and_arch")
def parse(
    parse_args_and_arch,
    parser,
    input_args=None,
    parse_known=False,
    suppress_defaults=False,
    modify_parser=None,
):
    """Parse as fairseq does, and put right what it made of it."""
    error, looked, defaults = parser.error, False, {}

    def look(parser):
        """Look at what will be parsed. fairseq calls this when it has imported --user-dir.

        It calls it once more when it has added the flags of the model.
        """
        nonlocal looked
        if modify_parser is not None:
            modify_parser(parser)
        if looked:
            parser.set_defaults(**defaults)
            return
        looked = True
        parser.error = partial(_refuse, error, None)
        known, _ = parser.parse_known_args(input_args)
        if getattr(known, "task", "given") is None:  # fairseq-validate alone asks for it
            defaults["task"] = find_task(known.path)
            parser.set_defaults(**defaults)
        # Programs that train nothing have fairseq's default there, which nobody gave.
        trains = hasattr(known, "max_update")
        parser.error = partial(_refuse, error, getattr(known, "arch", None) if trains else None)
        if getattr(known, "arch", "given") is None:
            raise UserError("name a model with --arch, such as resmlp_plus_tiny; --help lists them")

    parsed = parse_args_and_arch(parser, input_args, parse_known, suppress_defaults, look)
    flags = parsed[0] if isinstance(parsed, tuple) else parsed
    trains = hasattr(flags, "max_update")
    if trains and not suppress_defaults:  # else they are some of what was parsed before
        _check_modality(flags.arch, str(flags.task))
        _check_best(flags)
    if input_args is None:  # a command line in a list may be meant for another place
        check_data(flags)
        if trains and flags.optimizer:
            check_hardware(flags)
    mend_hardware(flags)
    mend_paths(flags)
    if trains:
        data = getattr(flags, "data", None)
        if data and not all(map(os.path.isdir, split_paths(data))):
            # In an archive fairseq looks for forgotten valid1, valid2 ... as it would in a folder.
            flags.ignore_unused_valid_subsets = True
        if flags.optimizer:
            mend_precision(flags)
    return parsed


def _refuse(error: Callable, arch: str | None, message: str) -> None:
    """Say what is wrong without the hundreds of flags that fairseq has."""
    if arch and message.startswith("unrecognized arguments: "):
        raise UserError(
            f"{message}; neither --arch {arch} nor what else was chosen has such flags (--help)"
        )
    if match := _CHOICE.match(message):
        flag, given = match.groups()
        if own := _list_choices(arch, flag):
            raise UserError(f"{flag} {given}: --arch {arch} takes {', '.join(own)}")
        raise UserError(f"{flag} {given}: there is none of that name; --help lists them")
    if message.startswith("argument "):
        raise UserError(message + (f", with --arch {arch}" if arch else ""))
    error(message)


def _list_choices(arch: str | None, flag: str) -> list[str]:
    """The values of a flag of an architecture; none if any will do, or it has no such flag."""
    config = MODEL_DATACLASS_REGISTRY.get(arch)
    known = getattr(config, "__dataclass_fields__", {}).get(flag[2:].replace("-", "_"))
    return [
        str(value) for value in getattr(getattr(known, "type", None), "__members__", {}).values()
    ]


def _check_modality(arch: str, task: str) -> None:
    """Refuse a model of text for images, and one of ours for images for text."""
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if is_of_images(task) and issubclass(model, FairseqEncoderDecoderModel):
        raise UserError(f"--arch {arch} is a model of text, --task {task} is for images")
    if task == "translation" and getattr(model, "modality", None) == "images":
        raise UserError(f"--arch {arch} is a model of images: give --task image_classification")


def _check_best(flags: Namespace) -> None:
    """Refuse what would keep the worst checkpoint for the best."""
    metric = flags.best_checkpoint_metric
    if flags.maximize_best_checkpoint_metric or flags.disable_validation:
        return
    if metric.removeprefix("ema_").removeprefix("real_") in _HIGHEST:
        raise UserError(
            f"--best-checkpoint-metric {metric} needs --maximize-best-checkpoint-metric"
        )
