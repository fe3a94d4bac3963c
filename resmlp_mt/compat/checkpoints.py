"""Checkpoints are read without running code from them, and what is broken is named."""

import argparse
import collections
import errno
import inspect
import os
import pickle
import re
import threading
import typing
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy
import omegaconf
import torch

from resmlp_mt.compat.messages import refused_class
from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import LAST, find_checkpoint
from resmlp_mt.nn.old_names import rename

PATCH = Patch(
    "checkpoints safe",
    "trusts what a checkpoint holds. Its main branch passes weights_only=False to torch.load, "
    "which runs pickled code. All versions resolve ${oc.env:SECRET} in its configuration, build a "
    "model of any size, and end in a traceback where the file is broken",
    "whoever loads a checkpoint of somebody else, or one that was damaged",
    "it is read as data alone, and what is wrong with it is said in a sentence",
)

_adopt: ContextVar[Callable[[str, dict], None] | None] = ContextVar("adopt", default=None)
_REFUSED = (
    "refused, since it holds {} that could run commands on this computer; use a checkpoint that "
    "fairseq wrote"
)

_FOREIGN = "not a checkpoint of fairseq (it holds no model with its configuration)"
_TOO_LARGE = "its configuration is of a model with more weights than it holds; copy it again"
# A reference to another field, and nothing else: "${task.data}".
_FIELD = re.compile(r"\$\{[\w.]+\}")
# The task of models without classes, as `tasks/image_pretraining.py` registers it.
_PRETRAINING = "image_pretraining"
# How the flags end that say how many rows or columns some weights have; ours, and fairseq's.
_SIZES = ("dim", "layers", "heads", "positions", "patch_size")


def allow_harmless_classes() -> None:
    """Let torch load the classes of data that fairseq writes into a checkpoint.

    Since torch 2.6 a checkpoint is read without running code from it, and what is not on a list is
    refused. These classes only hold values.
    """
    arrays = numpy._core.multiarray
    dtypes = {type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"}
    config = [
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        omegaconf.base.Metadata,
        omegaconf.base.ContainerMetadata,
        *(c for _, c in inspect.getmembers(omegaconf.nodes, inspect.isclass) if _is_value(c)),
    ]
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            arrays._reconstruct,
            arrays.scalar,
            numpy.ndarray,
            numpy.dtype,
            *dtypes,
            *config,
            # What the omegaconf classes name in their own state.
            typing.Any,
            collections.defaultdict,
            *(dict, list, tuple, int, float, bool, str),
        ]
    )


def _is_value(candidate: type) -> bool:
    return issubclass(candidate, omegaconf.nodes.ValueNode)


def load_checkpoint(
    path: str | Path, overrides: dict | None = None, on_all_ranks: bool = False
) -> dict:
    """Read a checkpoint of fairseq without running code from it, as any of its versions wrote it.

    Args:
        path: The file; what iopath knows, if it is installed.
        overrides: Flags to put in the place of those that it was trained with.
        on_all_ranks: Whether all workers read it at the same time.

    Returns:
        What fairseq's `load_checkpoint_to_cpu` returns: "model", "cfg" ...

    Raises:
        UserError: If there is none, it is broken, or holds more than data; it names the file.
    """
    try:
        local = _fetch(str(path), on_all_ranks)
        state = _modernise(_read(local), overrides or {})
        _check_parts(state, os.path.getsize(local))
        _rename(state)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error.__cause__
    return state


def find_and_read(model: str | Path, kind: str | None = None) -> tuple[Path, dict]:
    """The checkpoint that a model's name, folder or file stands for, and what it holds.

    A folder of pre-training stands for its last checkpoint. The best one has the lowest loss, and
    so has a teacher that hardly tells images apart.

    Args:
        model, kind: As for `find_checkpoint`.

    Raises:
        UserError: If there is none, or it is broken.
    """
    path = find_checkpoint(model, kind)
    state = load_checkpoint(path)
    last = path.with_name(LAST)
    chosen_as_best = path.name == "checkpoint_best.pt" and Path(model).is_dir()
    pretrained = getattr(state["cfg"].task, "_name", None) == _PRETRAINING
    if pretrained and chosen_as_best and last.is_file():
        path, state = last, load_checkpoint(last)
    return path, state


@PATCH.replaces(
    "fairseq.checkpoint_utils:load_checkpoint_to_cpu", "(path, arg_overrides, load_on_all_ranks)"
)
def load_in_fairseq(_, path, arg_overrides=None, load_on_all_ranks=False):
    """Read by our own hand: fairseq's calls torch.load as each of its versions likes."""
    state = load_checkpoint(path, arg_overrides, load_on_all_ranks)
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


@PATCH.replaces(
    "fairseq.checkpoint_utils:load_model_ensemble_and_task",
    "(filenames, arg_overrides, task, strict, suffix, num_shards, state)",
)
def load_models(load_ensemble, filenames, arg_overrides=None, *args, **kwargs):
    """Let a model not be greater than its checkpoint, whose configuration may say anything."""
    if arg_overrides or not all(map(os.path.isfile, filenames)):
        # Of sizes that the user chose, or in several files.
        return load_ensemble(filenames, arg_overrides, *args, **kwargs)
    # Equal weights may be stored once, as those of a model are that was never trained.
    left = 10**6 + sum(2 * os.path.getsize(name) for name in filenames)
    here = threading.get_ident()

    def count(module, name, parameter):
        nonlocal left
        if threading.get_ident() != here:  # torch tells of every thread's modules
            return
        left -= parameter.numel() + 400  # each has a cost of its own
        if left < 0:
            raise UserError(f"{filenames[0]}: {_TOO_LARGE}")

    hook = torch.nn.modules.module.register_module_parameter_registration_hook(count)
    try:
        return load_ensemble(filenames, arg_overrides, *args, **kwargs)
    finally:
        hook.remove()


def _read(path: str) -> object:
    """What torch finds in a file, where it is data alone."""
    try:
        _check_archive(path)
        with open(path, "rb") as stream:
            return torch.load(stream, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except (FileNotFoundError, IsADirectoryError):
        raise UserError("no such checkpoint") from None
    except (pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise UserError(_explain_refusal(str(error))) from None
    except (EOFError, RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # the disk's trouble, not the file's
        raise UserError(_explain_damage(str(error).strip(), path)) from None
    except Exception as error:  # torch's reader fails anywhere on a file that was forged
        raise UserError("not a checkpoint, or a corrupt one") from error


def _modernise(state: object, overrides: dict) -> dict:
    """Bring what was read into the form of today's fairseq."""
    from fairseq import checkpoint_utils

    if not isinstance(state, dict):
        raise UserError(_FOREIGN)
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
        raise UserError(f"{_FOREIGN}: {reason:.200}") from error


def _check_parts(state: dict, size: int) -> None:
    """Check that a checkpoint has what it must have, in a file of `size` bytes."""
    try:
        whole = _is_whole(state)
        largest = _find_largest(state["cfg"].model) if whole else 0
    except (omegaconf.errors.OmegaConfBaseException, RecursionError):  # a field that names none
        whole, largest = False, 0
    if not whole:
        raise UserError(_FOREIGN)
    # A matrix has more weights than rows, and a weight is no less than a byte.
    if largest > size:
        raise UserError(_TOO_LARGE)


def _fetch(path: str, on_all_ranks: bool) -> str:
    """The file on this computer that fairseq would read: anew where the path is a remote one."""
    # Not above: it imports the plugin, which imports this module.
    from fairseq.file_io import PathManager

    if not PathManager.path_requires_pathmanager(path):
        return path
    try:
        Path(PathManager.get_local_path(path)).unlink(
            missing_ok=True
        )  # it may be older than what is there
        if on_all_ranks:
            torch.distributed.barrier()
        return PathManager.get_local_path(path)
    except OSError as error:
        raise UserError(f"could not be fetched: {error}") from None


def _check_archive(path: str) -> None:
    """Refuse a zip that was damaged, or that unpacks to more than its size.

    torch reads both: it writes a checksum of each file in the zip, but compares none.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:  # a checkpoint of old, or for torch to complain of
        return
    with archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise UserError(
                "refused, since it is compressed, as torch writes no checkpoint; use one that "
                "fairseq wrote"
            )
        # All are 0 where whoever saved it has switched them off in torch.
        if any(member.CRC for member in members) and (damaged := archive.testzip()):
            raise UserError(f"corrupt checkpoint (wrong checksum of {damaged}); copy it again")


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


def _find_largest(model: omegaconf.DictConfig | argparse.Namespace) -> int:
    """The largest size in a model's configuration, whose other numbers may be anything."""
    values = vars(model) if isinstance(model, argparse.Namespace) else dict(model)
    sizes = [value for name, value in values.items() if str(name).endswith(_SIZES)]
    return max((size for size in sizes if isinstance(size, int)), default=0)


def _is_whole(state: dict) -> bool:
    """Whether a checkpoint has weights, and a configuration with all its parts."""
    cfg, parts = state.get("cfg"), ("common", "checkpoint", "generation")
    if not isinstance(cfg, omegaconf.DictConfig):
        return False
    if not all(isinstance(cfg.get(part), omegaconf.DictConfig) for part in parts):
        return False
    # Models and tasks of old, fairseq's own among them, have a namespace.
    either = omegaconf.DictConfig, argparse.Namespace
    if not all(isinstance(cfg.get(part), either) for part in ("task", "model")):
        return False
    extra, own = state.get("extra_state") or {}, state.get("task_state")
    if not isinstance(extra, dict) or not isinstance(own, dict | None):
        return False
    kept = [extra[name] for name in ("ema", "ema_fp32_params") if name in extra]
    return all(map(_are_weights, (state.get("model"), *kept)))


def _rename(state: dict) -> None:
    """Give the weights in a checkpoint the names of today."""
    extra = state.get("extra_state") or {}
    for part, name in ((state, "model"), (extra, "ema"), (extra, "ema_fp32_params")):
        if name in part:
            part[name] = rename(part[name])


def _are_weights(weights: object) -> bool:
    return isinstance(weights, dict) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) and _is_plain(tensor)
        for name, tensor in weights.items()
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether it is an array of real numbers that are all there."""
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_complex() or tensor.is_quantized)
        and tensor.nbytes <= tensor.untyped_storage().nbytes()
    )


def _explain_refusal(error: str) -> str:
    if name := refused_class(error):
        return _REFUSED.format(f"pickled code or objects ({name})")
    return "not a checkpoint, or a corrupt one"


def _explain_damage(error: str, path: str) -> str:
    # torch takes a file that begins with zeros for a tar of old; no name in a tar does.
    with open(path, "rb") as stream:
        begins_with_zero = stream.read(1) == b"\0"
    if "weights_only" in error and not begins_with_zero:
        # A TorchScript archive, or a tar of old: torch's advice is to read it all the same.
        return _REFUSED.format("code or objects")
    reason = "it begins with zeros" if begins_with_zero else error.split("\n")[0].split(". ")[0]
    return f"truncated or corrupt checkpoint ({reason or 'it ends too early'}); copy it again"
