"""The parts that a checkpoint must have, and their sizes against that of its file."""

import argparse

import omegaconf
import torch

from resmlp_mt.errors import UserError

FOREIGN = "not a checkpoint of fairseq (it holds no model with its configuration)"
TOO_LARGE = "its configuration is of a model with more weights than it holds; copy it again"
# How the flags end that say how many rows or columns some weights have; ours, and fairseq's.
_SIZES = ("dim", "layers", "heads", "positions", "patch_size")


def check_parts(state: dict, size: int) -> None:
    """Check that a checkpoint has what it must have, in a file of `size` bytes.

    Raises:
        UserError: If it lacks a part, or is of a model too large for the file.
    """
    try:
        whole = _is_whole(state)
        largest = _find_largest(state["cfg"].model) if whole else 0
    except (omegaconf.errors.OmegaConfBaseException, RecursionError):  # a field that names none
        whole, largest = False, 0
    if not whole:
        raise UserError(FOREIGN)
    # A matrix has more weights than rows, and a weight is no less than a byte.
    if largest > size:
        raise UserError(TOO_LARGE)


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


def _are_weights(weights: object) -> bool:
    return isinstance(weights, dict) and all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) and _is_plain(tensor)
        for name, tensor in weights.items()
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is an array of real numbers that are all there."""
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_complex() or tensor.is_quantized)
        and tensor.nbytes <= tensor.untyped_storage().nbytes()
    )
