"""What fairseq and torch make of flags."""

import difflib
import importlib.util
import logging
import os
import re
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from fairseq import optim, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.file_io import PathManager
from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
)

from resmlp_mt.compat.checkpoints import find_and_read, load_checkpoint
from resmlp_mt.compat.impossible import check_flags, is_our_translator
from resmlp_mt.compat.languages import warn_of_whole_words
from resmlp_mt.compat.patching import Patch
from resmlp_mt.compat.processor import multiplies_bf16
from resmlp_mt.data.vocabulary import Vocabulary
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.files.kinds import is_of_images
from resmlp_mt.nn.attention import expect_new_shapes

logger = logging.getLogger(__name__)
# What argparse says of a value that is none of those that a flag takes.
_CHOICE = re.compile(r"argument (--[\w-]+)\S*: invalid choice: '(.*?)' \(")
# What a flag without a default has in fairseq's configuration.
_MISSING = re.compile(r"argument (--[\w-]+)\S*: invalid \w+ value: '\?\?\?'")
# What argparse says of a value that is no list.
_NO_LIST = re.compile(r"argument (--[\w-]+)\S*: invalid <lambda> value: '(.*)'")

PATCH = Patch(
    "flags",
    "ends with a bare RuntimeError without --arch. It answers a wrong value with hundreds of "
    "flags. With --bf16 it looks for a TPU, and on CPUs it talks by NCCL. It takes "
    "--fp16 on CPUs, and with optimizers that do not fit it, and fails later. It ends in a "
    "traceback where a number is out of range, as in --update-freq 0. It divides by zero where "
    "the warm-up leaves no update for a cosine. It ends in a traceback where a schedule has no "
    "length, where --best-checkpoint-metric is not measured, after an epoch, where a training has "
    "two places to start from, and where --valid-subset names valid1. It calls it a bug of its own "
    "where --sampling has no number of translations. It lists an archive of images as if it were a "
    "folder. It trains from scratch where --finetune-from-model names a folder. On new GPUs it "
    "lets torch plan the attention for each shape of a batch",
    "whoever mistypes a value, or trains on CPUs, in 16 bits, for a few updates, on a .tar of "
    "images, or on from a folder, or translates on a GPU, or samples translations",
    "each is put right or refused before anything is loaded. --path and --finetune-from-model "
    "take folders and the names of models that come with the package",
)


@PATCH.replaces("fairseq.options:parse_args_and_arch", "535ef0431681")
def parse(parse_args_and_arch, parser, input_args=None, *args, **kwargs):
    """Parse as fairseq does, and put right what it made of it."""
    error = parser.error
    parser.error = partial(_refuse, parser, error, None)
    known, _ = _name_what_fails(parser.parse_known_args, input_args)
    if getattr(known, "task", "given") is None:  # fairseq-validate alone asks for it
        parser.set_defaults(task=_find_task(known.path))
    # Programs that train nothing have fairseq's default there, which nobody gave.
    trains = hasattr(known, "max_update")
    arch = getattr(known, "arch", None) if trains else None
    parser.error = partial(_refuse, parser, error, arch)
    if getattr(known, "arch", "given") is None:
        raise UserError("name a model with --arch, such as resmlp_plus_tiny; --help lists them")
    parsed = _name_what_fails(parse_args_and_arch, parser, input_args, *args, **kwargs)
    flags = parsed[0] if isinstance(parsed, tuple) else parsed
    if not kwargs.get("suppress_defaults"):  # else they are some of what was parsed before
        check_flags(flags)
    if input_args is None:  # a command line in a list may be meant for another place
        _check_data(flags)
    _mend_schedule(flags)
    _mend_hardware(flags)
    _mend_paths(flags)
    if getattr(flags, "optimizer", None):
        if input_args is None:
            check_hardware(flags)
        _mend_precision(flags)
    warn_of_whole_words(flags)
    _warn_of_rest(flags)
    return parsed


def _warn_of_rest(flags: Namespace) -> None:
    """Say that fairseq's tasks of translation leave sentences out, where ours does not."""
    task, multiple = getattr(flags, "task", None), getattr(flags, "required_batch_size_multiple", 1)
    ours = not hasattr(flags, "max_update") or is_our_translator(getattr(flags, "arch", None))
    if ours and multiple > 1 and "translation" in str(task) and task != "translation":
        logger.warning(
            "--task %s is fairseq's, which leaves out the last sentences of a set whose number is "
            "no multiple of %d: give --required-batch-size-multiple 1",
            task, multiple,
        )  # fmt: skip


def _name_what_fails(parse: Callable, *args, **kwargs):
    """Parse, and name the flag whose value fairseq evaluates as Python, and cannot."""
    try:
        return parse(*args, **kwargs)
    except SyntaxError as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code is ArgumentParser._get_value.__code__:
                flag = frame.f_locals["action"].option_strings[0]
                raise _want_numbers(flag, frame.f_locals["arg_string"]) from None
        raise


def _want_numbers(flag: str, given: str) -> UserError:
    return UserError(f"{flag} '{given}': give a number, or several with commas between")


def _refuse(parser: ArgumentParser, error: Callable, arch: str | None, message: str) -> None:
    """Say what is wrong without the hundreds of flags that fairseq has."""
    if arch and message.startswith("unrecognized arguments: "):
        flags, known = re.findall(r"--[\w-]+", message), parser._option_string_actions
        near = [name for flag in flags for name in difflib.get_close_matches(flag, known, 1, 0.78)]
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        raise UserError(
            f"{message}; neither --arch {arch} nor what else was chosen has such flags (--help)"
            f"{meant}"
        )
    if match := _CHOICE.match(message):
        flag, given = match.groups()
        if arch and (own := _list_choices(arch, flag)):
            others = [name for name in ARCH_MODEL_REGISTRY if given in _list_choices(name, flag)]
            taken = f"; {given} is for {name_some(others)}" if others else ""
            raise UserError(f"{flag} {given}: --arch {arch} takes {', '.join(own)}{taken}")
        near = difflib.get_close_matches(given, re.findall(r"'([\w-]+)'", message)[1:])
        meant = f"; did you mean {', '.join(near)}?" if near else ";"
        raise UserError(f"{flag} {given}: there is none of that name{meant} --help lists them")
    if match := _NO_LIST.match(message):
        raise _want_numbers(*match.groups())
    if missing := _MISSING.match(message):
        raise UserError(f"{missing[1]} is missing")
    if message.startswith("argument "):
        raise UserError(message + (f", with --arch {arch}" if arch else ""))
    error(message)


def _list_choices(arch: str, flag: str) -> list[str]:
    """What a flag of an architecture may be; nothing if any value will do, or it has no such."""
    config = MODEL_DATACLASS_REGISTRY.get(arch)
    known = getattr(config, "__dataclass_fields__", {}).get(flag[2:].replace("-", "_"))
    values = known and getattr(known.type, "__members__", {})
    return [str(value) for value in (values or {}).values()]


def _check_data(flags: Namespace) -> None:
    """Refuse data that are not there before a training makes its folder."""
    for path in utils.split_paths(getattr(flags, "data", None) or ""):
        if not (PathManager.path_requires_pathmanager(path) or os.path.exists(path)):
            raise UserError(f"{path}: no such file or folder, where the data should be")


def check_hardware(flags: Namespace) -> None:
    """Refuse a training in fp16 where there is no GPU: fairseq fails at once, or in an overflow.

    Raises:
        UserError: Naming the flag.
    """
    if getattr(flags, "fp16", False) and _is_on_cpu(flags):
        raise UserError("--fp16 needs a GPU, and there is none; --bf16 works on CPUs")
    if getattr(flags, "profile", False) and _is_on_cpu(flags):
        raise UserError("--profile needs a GPU, and there is none: leave it out")


def _mend_schedule(flags: Namespace) -> None:
    """Give a polynomial decay the length that fairseq promises."""
    is_polynomial = getattr(flags, "lr_scheduler", None) == "polynomial_decay"
    if is_polynomial and flags.total_num_update is None:
        flags.total_num_update = getattr(flags, "max_update", 0)


def _mend_hardware(flags: Namespace) -> None:
    if getattr(flags, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
        flags.tpu = False
    if _is_on_cpu(flags):
        if getattr(flags, "distributed_backend", None) == "nccl":
            flags.distributed_backend = "gloo"
        if getattr(flags, "bf16", False):
            # Slower there than plain products; whatever its name, this is for CPUs too.
            torch.backends.cuda.enable_flash_sdp(False)
            if not multiplies_bf16():
                logger.warning(
                    "--bf16: this processor has no instructions for it, and products take over 50 "
                    "times as long as in fp32: leave it out"
                )
    elif _kind_of(flags) == "text":
        expect_new_shapes()


def _mend_paths(flags: Namespace) -> None:
    if (start := getattr(flags, "finetune_from_model", None)) is not None:
        if not start:  # it would stand for the working folder
            raise UserError("--finetune-from-model is empty; name a checkpoint, folder or model")
        flags.finetune_from_model = _find(start, _kind_of(flags))
        if _kind_of(flags) == "images" and os.path.isdir(start):
            flags.finetune_from_model = str(find_and_read(start)[0])
        _check_subwords(start, flags)
    in_parts = getattr(flags, "checkpoint_suffix", "") or (
        getattr(flags, "checkpoint_shard_count", 1) > 1
    )
    if (path := getattr(flags, "path", None)) and not in_parts:
        found = [_find(part, _kind_of(flags)) for part in utils.split_paths(path)]
        flags.path = os.pathsep.join(found)
    data = getattr(flags, "data", None)
    if data and not all(map(os.path.isdir, utils.split_paths(data))):
        # fairseq looks for forgotten valid1, valid2 ... in it, as it would in a folder.
        flags.ignore_unused_valid_subsets = True
    elif data and getattr(flags, "valid_subset", None):
        # fairseq does not find a name among valid1.en-de.en.bin and the like.
        there = {
            p.name.split(".")[0] for d in utils.split_paths(data) for p in Path(d).glob("valid*")
        }
        if there <= set(flags.valid_subset.split(",")):
            flags.ignore_unused_valid_subsets = True


def _check_subwords(start: str, flags: Namespace) -> None:
    """Refuse text of other subwords than those of the model that is trained further.

    Dictionaries of one size pass everything else, and each word then stands for another.
    """
    data = Path(utils.split_paths(flags.data)[0])
    for path in Path(flags.finetune_from_model).parent.glob("dict.*.txt"):
        given = data / path.name
        if given.is_file() and Vocabulary(given).symbols != Vocabulary(path).symbols:
            raise UserError(
                f"{given}: other subwords than those of {start}, which is to be trained further: "
                f"prepare the text anew with 'resmlp-mt prepare --like {start}'"
            )


def _mend_precision(flags: Namespace) -> None:
    """Take weights one by one where an optimizer needs it, and refuse what it cannot do.

    fairseq joins the weights of --fp16 in one long vector, which adagrad and lamb do not take.
    """
    flag = "bf16" if flags.bf16 else "fp16"
    small = flags.memory_efficient_fp16 or flags.memory_efficient_bf16
    if not getattr(flags, flag) or (flag == "bf16" and not small):
        return
    cfg = convert_namespace_to_omegaconf(flags).optimizer
    optimizer = optim.build_optimizer(cfg, [torch.nn.Parameter(torch.zeros(1))])
    if small and not optimizer.supports_memory_efficient_fp16:
        raise UserError(
            f"--optimizer {flags.optimizer} needs a copy of the weights in fp32, which "
            f"--memory-efficient-{flag} does not keep: take --{flag}, or --optimizer adam"
        )
    if flag == "bf16":
        return
    if not (flags.fp16_no_flatten_grads or optimizer.supports_flat_params):
        logger.info("--optimizer %s sets --fp16-no-flatten-grads", flags.optimizer)
        flags.fp16_no_flatten_grads = True


def _is_on_cpu(flags: Namespace) -> bool:
    return getattr(flags, "cpu", False) or not torch.cuda.is_available()


def _find(path: str, kind: str | None = None) -> str:
    """The checkpoint that a path or a name stands for; if there is none, that kind is offered."""
    if PathManager.path_requires_pathmanager(path):
        return path
    return str(find_checkpoint(path, kind))


def _kind_of(flags: Namespace) -> str | None:
    """Whether the task is of images or of text, as `find_checkpoint` calls them."""
    task = getattr(flags, "task", None)
    return task and ("images" if is_of_images(task) else "text")


def _find_task(path: str | None) -> str:
    """The task of the first checkpoint that --path names."""
    if path is None:
        raise UserError("--path CHECKPOINT is missing: what shall be validated?")
    checkpoint = _find(utils.split_paths(path)[0])
    return load_checkpoint(checkpoint)["cfg"].task._name
