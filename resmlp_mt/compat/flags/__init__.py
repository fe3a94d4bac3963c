"""What fairseq and torch make of flags: `parse` has the order in which they are put right.

Each module is about some of the flags. It refuses those that cannot be, and puts others right.
"""

from functools import partial

from resmlp_mt.compat.flags.complaints import name_what_fails, refuse
from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.compat.flags.hardware import check_hardware, mend_hardware, mend_precision
from resmlp_mt.compat.flags.models import check_modality, check_model
from resmlp_mt.compat.flags.paths import find_task, mend_paths
from resmlp_mt.compat.flags.search import check_joining, check_language_model, check_search
from resmlp_mt.compat.flags.sets import (
    check_batches,
    check_data,
    check_sets,
    mend_sets,
    warn_of_rest,
)
from resmlp_mt.compat.flags.training import (
    check_optimizer,
    check_packages,
    check_schedule,
    check_start,
    mend_writing,
)
from resmlp_mt.compat.flags.validation import check_best, check_bleu, check_metric
from resmlp_mt.compat.flags.values import check_numbers, check_overrides
from resmlp_mt.compat.languages import warn_of_whole_words
from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError

# Before anything is loaded.
_CHECKS = (
    check_modality,
    check_model,
    check_numbers,
    check_optimizer,
    check_schedule,
    check_packages,
    check_metric,
    check_best,
    check_bleu,
    check_start,
    check_overrides,
    check_search,
    check_joining,
    check_language_model,
    check_sets,
    check_batches,
)

PATCH = Patch(
    "flags",
    "ends with a bare RuntimeError without --arch. It answers a wrong value with hundreds of "
    "flags. With --bf16 it looks for a TPU, and on CPUs it talks by NCCL. It takes "
    "--fp16 on CPUs, and with optimizers that do not fit it, and fails later. It ends in a "
    "traceback where a number is out of range, as in --update-freq 0, where a schedule has no "
    "length, no warm-up or no decay, where --best-checkpoint-metric is not measured, after an "
    "epoch, where a training has two places to start from, and where --valid-subset names valid1. "
    "It calls it a bug of its own where --sampling has no number of translations. It lists an "
    "archive of images as if it were a folder. It trains from scratch where "
    "--finetune-from-model names a folder. On new GPUs it lets torch plan the attention for each "
    "shape of a batch",
    "whoever mistypes a value, or trains on CPUs, in 16 bits, for a few updates, on a .tar of "
    "images, or on from a folder, or translates on a GPU, or samples translations",
    "each is put right or refused before anything is loaded. --path and --finetune-from-model "
    "take folders and the names of models that come with the package",
)


@PATCH.replaces("fairseq.options:parse_args_and_arch", "535ef0431681")
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
        parser.error = partial(refuse, parser, error, None)
        known, _ = parser.parse_known_args(input_args)
        if getattr(known, "task", "given") is None:  # fairseq-validate alone asks for it
            defaults["task"] = find_task(known.path)
            parser.set_defaults(**defaults)
        # Programs that train nothing have fairseq's default there, which nobody gave.
        trains = hasattr(known, "max_update")
        arch = getattr(known, "arch", None) if trains else None
        parser.error = partial(refuse, parser, error, arch)
        if getattr(known, "arch", "given") is None:
            raise UserError("name a model with --arch, such as resmlp_plus_tiny; --help lists them")

    parsed = name_what_fails(
        parse_args_and_arch, parser, input_args, parse_known, suppress_defaults, look
    )
    given = parsed[0] if isinstance(parsed, tuple) else parsed
    flags = Flags(given)
    if not suppress_defaults:  # else they are some of what was parsed before
        for check in _CHECKS:
            check(flags)
    is_from_shell = input_args is None  # a command line in a list may be meant for another place
    if is_from_shell:
        check_data(flags)
        if flags.optimizer:
            check_hardware(given)
    mend_hardware(flags)
    mend_paths(flags)
    mend_sets(flags)
    mend_writing(flags)
    if flags.optimizer:
        mend_precision(flags)
    warn_of_whole_words(given)
    warn_of_rest(flags)
    return parsed
