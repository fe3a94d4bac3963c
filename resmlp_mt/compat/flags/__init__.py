"""Flags that a user of this package meets: presets, hardware and paths. All others are fairseq's.

Impossible flags are refused before anything is loaded, and some flags are put right.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial

from fairseq.models import ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel
from fairseq.utils import import_user_module, split_paths

from resmlp_mt.compat.flags.hardware import check_hardware, mend_hardware, mend_precision
from resmlp_mt.compat.flags.paths import check_data, find_task, mend_paths
from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import is_of_images

_MOST_CHOICES = 400  # characters; fairseq's own models and tasks are more
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
    plugin = ArgumentParser(add_help=False, allow_abbrev=False)
    plugin.add_argument("--user-dir")
    import_user_module(plugin.parse_known_args(input_args)[0])
    if modify_parser is not None:
        modify_parser(parser)
    error = parser.error
    parser.error = partial(_refuse, error, None)
    known, _ = parser.parse_known_args(input_args)
    if getattr(known, "task", "given") is None:  # fairseq-validate alone asks for it
        parser.set_defaults(task=find_task(known.path))
    # Programs that train nothing have fairseq's default there, which nobody gave.
    trains = hasattr(known, "max_update")
    parser.error = partial(_refuse, error, getattr(known, "arch", None) if trains else None)
    if getattr(known, "arch", "given") is None:
        raise UserError("name a model with --arch, such as resmlp_plus_tiny; --help lists them")
    parsed = parse_args_and_arch(parser, input_args, parse_known, suppress_defaults, modify_parser)
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
    if message.startswith("argument "):
        said, _, choices = message.partition(" (choose from ")
        message = f"{said}; --help lists them" if len(choices) > _MOST_CHOICES else message
        raise UserError(message + (f", with --arch {arch}" if arch else ""))
    error(message)


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
