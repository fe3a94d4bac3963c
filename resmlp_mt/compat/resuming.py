"""Which checkpoint a training goes on from, and whether it can."""

import logging
import os
from argparse import Namespace
from functools import partial
from pathlib import Path

from omegaconf import OmegaConf

from resmlp_mt.compat.checkpoints import adopting, load_checkpoint
from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError, name_flag
from resmlp_mt.files.claim import claim_folder
from resmlp_mt.files.finding import LAST, best_checkpoints, numbered_checkpoints

logger = logging.getLogger(__name__)

# Fields of the configuration that fairseq's own function does not read.
_READ = ("save_dir", "no_save", "patience")
_RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
_OTHER_OPTIMIZER = (
    "the checkpoint's optimizer knows a model of other sizes, or of other embeddings that are "
    "shared: train with the flags of the checkpoint, or into another --save-dir; or start the "
    "optimizer anew with --reset-optimizer, or from the weights alone with --finetune-from-model"
)


@replaces("fairseq.checkpoint_utils:load_checkpoint")
def find_and_load(load, cfg, trainer, **passed_on):
    """Start afresh only where there is nothing to go on from.

    checkpoint_last.pt may be gone though others of the same training lie beside it.
    """
    # Programs of others may give no more than fairseq reads.
    if not all(hasattr(cfg, name) for name in _READ) or not cfg.save_dir:
        return load(cfg, trainer, **passed_on)
    saves = trainer.is_data_parallel_master and not cfg.no_save and os.path.isdir(cfg.save_dir)
    if saves and not claim_folder(Path(cfg.save_dir)):
        raise UserError(
            f"--save-dir {cfg.save_dir}: another training is at work there; wait for its end"
        )
    last = os.path.join(cfg.save_dir, LAST)
    if trainer.checkpoint_suffix:  # in parts, of which each worker has its own
        return load(cfg, trainer, **passed_on)
    goes_on, is_named = os.path.exists(last), cfg.restore_file != LAST
    newest = last if goes_on else next(map(str, _newest_first(cfg.save_dir)), None)
    if is_named and not (newest and _began_so(newest, cfg)):
        _check_named(cfg.save_dir, cfg.restore_file)
    elif newest and (is_named or not goes_on):
        if trainer.is_data_parallel_master:
            said = "going on from %s, the newest checkpoint; to begin anew, give another --save-dir"
            logger.warning(said, newest)
        found = {"restore_file": newest, "finetune_from_model": None}
        cfg = OmegaConf.merge(cfg, found | (dict.fromkeys(_RESETS, False) if is_named else {}))
    try:
        with adopting(partial(_adopt, cfg, trainer)):
            extra_state, epochs = load(cfg, trainer, **passed_on)
    except UserError as error:
        others = _newest_first(cfg.save_dir)
        if not others or not str(error).startswith(f"{last}: "):
            raise
        raise UserError(f"{error}, or go on from another: --restore-file {others[0]}") from None
    except ValueError as error:
        if "parameter group" not in str(error):
            raise
        raise UserError(_OTHER_OPTIMIZER) from error  # torch: of another number of weights
    except RuntimeError as error:
        if "dataloader mismatch" not in str(error):
            raise
        raise UserError(
            f"{cfg.restore_file}: stands within an epoch of other data, or of other batches: begin "
            "an epoch anew with --reset-dataloader, or start from the weights alone with "
            "--finetune-from-model"
        ) from None
    anew = cfg.reset_optimizer or (cfg.finetune_from_model and not goes_on)
    if extra_state is None or anew:
        return extra_state, epochs
    if trainer.get_num_updates() == 0:
        raise UserError(
            f"{cfg.restore_file}: weights alone, no state: start with --finetune-from-model"
        )
    _check_optimizer(trainer)
    begin_group(epochs, trainer.cfg.optimization.update_freq, extra_state["train_iterator"])
    if not cfg.reset_meters:
        _count_on(trainer, cfg.patience, extra_state.get("patience", {}))
    return extra_state, epochs


def _check_optimizer(trainer) -> None:
    """Refuse an optimizer's state that is of another model.

    A model may be loaded into one of other sizes (a Toeplitz matrix, the matrices of an image
    model), but training cannot go on there with what the optimizer knew of the old one.
    """
    for parameter, state in trainer.optimizer.optimizer.state.items():
        for name in ("exp_avg", "sum", "momentum_buffer"):
            if name in state and state[name].shape != parameter.shape:
                raise UserError(_OTHER_OPTIMIZER)


def begin_group(batches, update_freq, place: dict) -> None:
    """Begin within an epoch where a group of --update-freq batches begins.

    fairseq would leave out the last one, and take the epoch for unfinished.
    """
    size = update_freq[min(batches.epoch, len(update_freq)) - 1]
    if over := batches.iterations_in_epoch % size:
        begin = {"iterations_in_epoch": batches.iterations_in_epoch - over}
        batches.load_state_dict(place | begin | {"num_shards": batches.num_shards})


def _adopt(cfg, trainer, path: str, state: dict) -> None:
    """Let the task fit a checkpoint to its data, if it can.

    fairseq takes the weights alone, which do not say what the classes were that they know.
    """
    # A training that started so goes on from its own checkpoint.
    last = os.path.join(cfg.save_dir, LAST)
    tunes = path == cfg.finetune_from_model and not os.path.exists(last)
    if tunes and trainer.is_data_parallel_master:
        _tell_other_flags(path, state["cfg"], trainer.cfg)
    if hasattr(trainer.task, "adopt_state"):
        trainer.task.adopt_state(state, path, trainer.get_model(), tunes)
    if trainer.cfg.ema.store_ema and state.get("extra_state") is not None:
        _adopt_average(state, trainer.get_model().state_dict())


def _tell_other_flags(path: str, before, now) -> None:
    """Warn of flags by which a model would do otherwise than where it was trained before."""
    told = []
    for part, names in ("model", None), ("task", ("mean", "std")):
        old, new = (
            vars(c[part]) if isinstance(c[part], Namespace) else c[part] for c in (before, now)
        )
        for name in names or old:
            values = old.get(name), new.get(name)
            if None not in values and values[0] != values[1] and not name.startswith("_"):
                told.append(f"{name_flag(name)} is {values[1]}, and was {values[0]}")
    if told:
        logger.warning("%s was trained with other flags: %s", path, "; ".join(told))


def _adopt_average(state: dict, weights: dict) -> None:
    """Let the moving average go on in a model with these weights.

    fairseq looks for the weights where it took them away, if a checkpoint has no average. It takes
    the fine copy of --ema-fp32 as it is, whatever the model's sizes.
    """
    state["extra_state"].setdefault("ema", dict(state["model"]))
    fine = state["extra_state"].get("ema_fp32_params", {})
    own = {name: weight.shape for name, weight in weights.items()}
    if any(own.get(name) != weight.shape for name, weight in fine.items()):
        del state["extra_state"]["ema_fp32_params"]  # it is made of the average then


def _count_on(trainer, patience: int, counted: dict) -> None:
    """Let --patience count on from what a checkpoint says. A training that it ended is done."""
    # Not above: it may be what imports fairseq, and so this module.
    from fairseq_cli.train import should_stop_early

    vars(should_stop_early).update(counted)
    if 0 < patience <= counted.get("num_runs", 0):
        logger.info("--patience %d ended this training", patience)
        trainer.cfg.optimization.max_update = trainer.get_num_updates()


def _check_named(folder: str, path: str) -> None:
    """Check that the file of --restore-file is there."""
    if os.path.exists(path):
        return
    meant = os.path.join(folder, path)
    hint = f"; did you mean {meant}?" if os.path.exists(meant) else ""
    raise UserError(f"--restore-file {path}: no such checkpoint{hint}")


def _began_so(newest: str, cfg) -> bool:
    """Whether a checkpoint is of a training that began by the same --restore-file and resets."""
    if os.path.realpath(newest) == os.path.realpath(cfg.restore_file):
        return False
    try:
        found = load_checkpoint(newest)["cfg"].checkpoint
    except UserError:  # it is broken, and --restore-file is to go on from a whole one
        return False
    return all(found.get(name) == cfg.get(name) for name in ("restore_file", *_RESETS))


def _newest_first(folder: str) -> list[Path]:
    """The checkpoints of a training but the last one; the best ones behind those with numbers."""
    numbered = [path for path, _ in reversed(numbered_checkpoints(Path(folder)))]
    return numbered + best_checkpoints(Path(folder))
