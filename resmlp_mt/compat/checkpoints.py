"""Checkpoints are read without running code from them, and what is broken is named."""

import argparse
import collections
import errno
import inspect
import os
import pickle
import typing
import zipfile

import numpy
import omegaconf
import torch
from fairseq import checkpoint_utils

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError, refused_class

_REFUSED = (
    "refused, since it holds {} that could run commands on this computer; use a checkpoint that "
    "fairseq wrote"
)

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


def explain_broken_checkpoints() -> None:
    """Make fairseq say which checkpoint it could not load, and why."""

    @patch(checkpoint_utils, "load_checkpoint_to_cpu")
    def load_or_explain(load, path, *args, **kwargs):
        try:
            _refuse_compression(path)
            state = load(path, *args, **kwargs)
            if _is_whole(state):
                # A matrix has more weights than rows, and a weight is no less than a byte.
                if _find_largest(state["cfg"].model) > os.path.getsize(path):
                    raise _too_large(path)
                return state
        except (FileNotFoundError, IsADirectoryError):
            raise UserError(f"{path}: no such checkpoint") from None
        except pickle.UnpicklingError as error:
            raise UserError(f"{path}: {_explain_refusal(str(error))}") from None
        except (EOFError, RuntimeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise  # the disk's trouble, not the file's
            if "weights_only" in str(error):
                # A TorchScript archive, or a tar of old: torch's advice is to read it all the same.
                raise UserError(f"{path}: {_REFUSED.format('code or objects')}") from None
            reason = str(error).strip().splitlines() or ["it ends too early"]
            raise UserError(
                f"{path}: truncated or corrupt checkpoint ({reason[0]}); copy it again"
            ) from None
        except UserError:
            raise
        except Exception:  # what is no configuration fails anywhere in OmegaConf and fairseq
            pass
        raise UserError(
            f"{path}: not a checkpoint of fairseq (it holds no model with its configuration)"
        )


def _refuse_compression(path: str) -> None:
    """Refuse a zip that unpacks to more than its size; torch writes none, but reads it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:  # a checkpoint of old, or for torch to complain of
        return
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise UserError(
            f"{path}: refused, since it is compressed, as torch writes no checkpoint; use one that "
            "fairseq wrote"
        )


def _too_large(path: str) -> UserError:
    return UserError(
        f"{path}: its configuration is of a model with more weights than it holds; copy it again"
    )


def _find_largest(model: omegaconf.DictConfig | argparse.Namespace) -> int:
    """The largest size in a model's configuration, whose other numbers may be anything."""
    values = vars(model) if isinstance(model, argparse.Namespace) else dict(model)
    sizes = [value for name, value in values.items() if name.endswith(_SIZES)]
    return max((size for size in sizes if isinstance(size, int)), default=0)


def _is_whole(state: dict) -> bool:
    """Whether a checkpoint has weights, and a configuration with all its parts."""
    cfg, parts = state["cfg"], ("common", "checkpoint", "generation")
    if not all(isinstance(cfg[part], omegaconf.DictConfig) for part in parts):
        return False
    # Models and tasks of old, fairseq's own among them, have a namespace.
    either = omegaconf.DictConfig, argparse.Namespace
    if not (isinstance(cfg.task, either) and isinstance(cfg.model, either)):
        return False
    extra, own = state["extra_state"] or {}, state.get("task_state")
    kept = [extra[name] for name in ("ema", "ema_fp32_params") if name in extra]
    return isinstance(own, (dict, type(None))) and all(map(_are_weights, (state["model"], *kept)))


def _are_weights(weights: dict[str, torch.Tensor]) -> bool:
    return all(isinstance(name, str) and _is_plain(tensor) for name, tensor in weights.items())


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether it is an array of real numbers that are all there."""
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_complex() or tensor.is_quantized)
        and tensor.nbytes <= tensor.untyped_storage().nbytes()
    )


def limit_models() -> None:
    """Let a model not be greater than its checkpoint, whose configuration may say anything."""

    @patch(checkpoint_utils, "load_model_ensemble_and_task")
    def load(load_models, filenames, arg_overrides=None, *args, **kwargs):
        if arg_overrides or not all(map(os.path.isfile, filenames)):
            # Of sizes that the user chose, or in several files.
            return load_models(filenames, arg_overrides, *args, **kwargs)
        # Equal weights may be stored once, as those of a model are that was never trained.
        left = 10**6 + sum(2 * os.path.getsize(name) for name in filenames)

        def count(module, name, parameter):
            nonlocal left
            left -= parameter.numel() + 400  # each has a cost of its own
            if left < 0:
                raise _too_large(filenames[0])

        hook = torch.nn.modules.module.register_module_parameter_registration_hook(count)
        try:
            return load_models(filenames, arg_overrides, *args, **kwargs)
        finally:
            hook.remove()


def _explain_refusal(error: str) -> str:
    if name := refused_class(error):
        return _REFUSED.format(f"pickled code or objects ({name})")
    return "not a checkpoint, or a corrupt one"
