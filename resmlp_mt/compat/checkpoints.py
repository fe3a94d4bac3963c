"""Checkpoints of fairseq, of any of its versions, are read as data and in today's form."""

import argparse
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import omegaconf
import torch

from resmlp_mt.compat.archives import read_data
from resmlp_mt.compat.contents import FOREIGN, TOO_LARGE, check_parts
from resmlp_mt.compat.patching import replaces
from resmlp_mt.data.identity import KEY, Identity
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import LAST, find_checkpoint
from resmlp_mt.files.kinds import PRETRAINING
from resmlp_mt.nn.old_names import rename

_adopt: ContextVar[Callable[[str, dict], None] | None] = ContextVar("adopt", default=None)
# A reference to another field, and nothing else: "${task.data}".
_FIELD = re.compile(r"\$\{[\w.]+\}")


def load_checkpoint(path: str | Path, overrides: dict | None = None) -> dict:
    """Read a checkpoint of fairseq without running code from it, as any of its versions wrote it.

    Args:
        path: The file.
        overrides: Flags to put in the place of those that it was trained with.

    Returns:
        What fairseq's `load_checkpoint_to_cpu` returns: "model", "cfg" ...

    Raises:
        UserError: If there is none, it is broken, or holds more than data; it names the file.
    """
    try:
        state = _modernise(read_data(str(path)), overrides or {})
        check_parts(state, os.path.getsize(path))
        _rename(state)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error.__cause__
    return state


def find_and_read(model: str | Path, kind: str | None = None) -> tuple[Path, dict]:
    """The checkpoint that a model's name, folder or file stands for, and its contents.

    Arguments are as for `find_checkpoint`. A folder of pre-training stands for its last checkpoint.
    The best one has the lowest loss, and so has a teacher that hardly tells images apart.

    Raises:
        UserError: If there is none, or it is broken.
    """
    path = find_checkpoint(model, kind)
    state = load_checkpoint(path)
    last = path.with_name(LAST)
    chosen_as_best = path.name == "checkpoint_best.pt" and Path(model).is_dir()
    pretrained = getattr(state["cfg"].task, "_name", None) == PRETRAINING
    if pretrained and chosen_as_best and last.is_file():
        path, state = last, load_checkpoint(last)
    return path, state


@replaces("fairseq.checkpoint_utils:load_checkpoint_to_cpu")
def load_in_fairseq(_, path, arg_overrides=None, load_on_all_ranks=False):
    """Read a checkpoint as data alone: each version of fairseq calls torch.load in its own way."""
    state = load_checkpoint(path, arg_overrides)
    if adopt := _adopt.get():
        adopt(path, state)
    return state


@contextmanager
def adopting(adopt: Callable[[str, dict], None]) -> Iterator[None]:
    """Let what fairseq reads from a path be changed before fairseq takes it."""
    token = _adopt.set(adopt)
    try:
        yield
    finally:
        _adopt.reset(token)


@replaces("fairseq.checkpoint_utils:load_model_ensemble_and_task")
def load_models(load_ensemble, filenames, arg_overrides=None, *args, **kwargs):
    """Let a model not be greater than its checkpoint, whose configuration may say anything.

    Models of other plugins may be. They may be built as ours, and then get other parts. Of older
    checkpoints what lies beside them tells the task what text they know.
    """
    # Not above: fairseq imports the plugin, which imports this module.
    from resmlp_mt.compat.plugins import check_arch, is_of_another_plugin

    # Equal weights may be stored once, as those of a model are that was never trained.
    left = 10**6 + sum(2 * os.path.getsize(name) for name in filenames if os.path.isfile(name))
    here, adopt, current = threading.get_ident(), _adopt.get(), None
    # Else of sizes that the user chose, or in several files.
    counts = bounded = not arg_overrides and all(map(os.path.isfile, filenames))

    def look(path, state):
        nonlocal counts, current
        current, cfg = path, state.get("cfg")  # a state that a program hands in may have none
        counts = bounded and not (cfg and is_of_another_plugin(cfg))
        if bounded and cfg:
            check_arch(path, cfg)

    def take(path, state):
        look(path, state)
        if text := Identity.of_checkpoint(path, state):
            state["task_state"] = (state.get("task_state") or {}) | {KEY: text.as_state()}
        if adopt:
            adopt(path, state)

    def count(module, name, parameter):
        nonlocal left
        if threading.get_ident() != here or not counts:  # torch tells of every thread's modules
            return
        left -= parameter.numel() + 400  # each has a cost of its own
        if left < 0:
            raise UserError(f"{filenames[0]}: {TOO_LARGE}")

    hook = torch.nn.modules.module.register_module_parameter_registration_hook(count)
    try:
        with adopting(take):
            if state := kwargs.get("state"):
                look(filenames[0], state)
            return load_ensemble(filenames, arg_overrides, *args, **kwargs)
    except UserError as error:
        if current is None or str(error).startswith(tuple(f"{name}: " for name in filenames)):
            raise
        raise UserError(f"{current}: {error}") from error
    finally:
        hook.remove()


def _modernise(state: object, overrides: dict) -> dict:
    """Bring what was read into the form of today's fairseq."""
    from fairseq import checkpoint_utils

    if not isinstance(state, dict):
        raise UserError(FOREIGN)
    for part in ("cfg", "args"):
        _check_interpolations(state.get(part))
    try:
        if state.get("args") is not None:
            vars(state["args"]).update(overrides)
        if state.get("cfg") is not None:
            state["cfg"] = omegaconf.OmegaConf.create(state["cfg"], flags={"allow_objects": True})
            checkpoint_utils.overwrite_args_by_name(state["cfg"], overrides)
        return checkpoint_utils._upgrade_state_dict(state)
    except Exception as error:  # fairseq and OmegaConf fail anywhere on what they did not write
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"{FOREIGN}: {reason:.200}") from error


def _check_interpolations(value: object) -> None:
    """Let a configuration not ask for what is not in it: a variable, a file.

    OmegaConf resolves "${oc.env:SECRET}" wherever it stands, and `pack` would write the secret into
    what is passed on. fairseq writes values alone; one field that names another is harmless.
    """
    if isinstance(value, omegaconf.Container):
        value = omegaconf.OmegaConf.to_container(value, resolve=False)
    if isinstance(value, str) and "${" in value and not _FIELD.fullmatch(value):
        raise UserError(
            f"refused, since its configuration asks for what is not in it ({value[:80]}); use a "
            "checkpoint that fairseq wrote"
        )
    if isinstance(value, argparse.Namespace):
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            _check_interpolations(part)


def _rename(state: dict) -> None:
    """Give the weights in a checkpoint the names of today."""
    extra = state.get("extra_state") or {}
    for part, name in ((state, "model"), (extra, "ema"), (extra, "ema_fp32_params")):
        if name in part:
            part[name] = rename(part[name])
