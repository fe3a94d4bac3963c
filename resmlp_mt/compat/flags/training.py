"""What a training starts from, and how it goes on: schedules, optimizers and packages."""

import logging
import math
import traceback
from argparse import ArgumentParser
from importlib.util import find_spec

import torch
from fairseq.optim import OPTIMIZER_REGISTRY, FairseqOptimizer
from fairseq.optim.lr_scheduler import LR_SCHEDULER_DATACLASS_REGISTRY, LR_SCHEDULER_REGISTRY
from omegaconf import OmegaConf

from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.errors import UserError, name_flag
from resmlp_mt.files.finding import LAST

logger = logging.getLogger(__name__)
_HERE = ("fairseq.", "resmlp_mt.")


def check_schedule(flags: Flags) -> None:
    """Refuse a schedule that fails at an update, or has no rate there, by trying it.

    Where a training has no last update, that is up to one that hardly any training reaches. A
    polynomial decay gets the length that fairseq promises.
    """
    if flags.max_update is None:  # nothing is trained
        return
    optimizer = OPTIMIZER_REGISTRY.get(flags.optimizer, FairseqOptimizer)
    of_others = not optimizer.__module__.startswith(_HERE)
    if flags.lr_scheduler == "pass_through" and of_others:  # it may have a schedule of its own
        return
    if flags.lr_scheduler == "polynomial_decay" and flags.total_num_update is None:
        flags.total_num_update = flags.max_update
    kind = LR_SCHEDULER_REGISTRY[flags.lr_scheduler]
    kind.add_args(parser := ArgumentParser(add_help=False))
    names = dict.fromkeys(["lr", "max_update", *(action.dest for action in parser._actions)])
    given = {name: getattr(flags, name) for name in names}
    optimizer = FairseqOptimizer(None)  # fairseq's own take half a second to be configured
    optimizer._optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.0)
    talks = logging.getLogger(kind.__module__)
    talks.disabled, update = True, 0
    try:
        cfg = flags.of_program
        if config := LR_SCHEDULER_DATACLASS_REGISTRY.get(flags.lr_scheduler):
            cfg = OmegaConf.structured(config.from_namespace(cfg))  # with the types of its fields
        schedule = kind(cfg, optimizer)
        schedule.step_begin_epoch(1)
        for update in _choose_updates(given):
            schedule.step_update(update)
            if not 0 <= (rate := optimizer.get_lr()) < math.inf:
                raise ValueError(f"a rate of {rate}")
        schedule.step(1, 1.0)
    except UserError:
        raise
    except Exception as error:  # whatever a schedule divides by, asserts or reads
        reason = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
        values = [f"{name_flag(name)} {str(value).strip('[]')}" for name, value in given.items()]
        raise UserError(
            f"--lr-scheduler {flags.lr_scheduler} fails at update {update} ({reason}): change one "
            f"of {', '.join(values)}"
        ) from None
    finally:
        talks.disabled = False


def _choose_updates(given: dict) -> list[int]:
    """The first and the last update, those where a schedule changes, and some between."""
    last = given["max_update"] or 2**17
    numbers = [int(n) for n in given.values() if isinstance(n, int | float) and abs(n) < math.inf]
    near = {n + i for n in numbers for i in (0, 1)} | {2**i for i in range(18)} | {0, last}
    return sorted(n for n in near if 0 <= n <= last)


def check_optimizer(flags: Flags) -> None:
    """Refuse optimizers that cannot be built from a command line."""
    if flags.optimizer == "composite":
        raise UserError(
            "--optimizer composite needs groups, which only a file for fairseq-hydra-train can name"
        )
    for name in ("relative_step", "warmup_init"):
        if flags.optimizer == "adafactor" and getattr(flags, name):
            raise UserError(
                f"{name_flag(name)} is for rates without --lr, which fairseq always sets: leave "
                "it out"
            )


def mend_writing(flags: Flags) -> None:
    """Write no checkpoint beside the training, and say so.

    fairseq writes such a one in place, where a kill leaves half of it, and under one of its names:
    neither checkpoint_last.pt nor checkpoint_best.pt where there is one for the epoch.
    """
    if flags.write_checkpoints_asynchronously:
        logger.warning(
            "--write-checkpoints-asynchronously does nothing: training waits until a checkpoint is "
            "whole, under all of its names"
        )
        flags.write_checkpoints_asynchronously = False


def check_packages(flags: Flags) -> None:
    """Refuse what needs a package that is not installed."""
    sharded = "--ddp-backend fully_sharded"
    for package, flag, is_given in (
        ("wandb", "--wandb-project", flags.wandb_project),
        ("fairscale", sharded, flags.ddp_backend == "fully_sharded"),
    ):
        if is_given and find_spec(package) is None:
            raise UserError(f"{flag} needs {package}: pip install {package}")


def check_start(flags: Flags) -> None:
    """Refuse two places to start a training from."""
    if flags.finetune_from_model is None:
        return
    if flags.restore_file != LAST:
        raise UserError(
            "--finetune-from-model starts from weights, --restore-file goes on with a training: "
            "give one of them"
        )
    for name in ("optimizer", "lr_scheduler", "meters", "dataloader"):
        if getattr(flags, f"reset_{name}"):
            flag = name_flag(f"reset_{name}")
            raise UserError(f"--finetune-from-model resets that anyway: leave out {flag}")
