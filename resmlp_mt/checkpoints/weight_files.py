"""Files of published weights, read without running code from them."""

import errno
import logging
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from resmlp_mt.checkpoints.bit_arrays import name_as_timm
from resmlp_mt.compat.messages import refused_class
from resmlp_mt.errors import UserError, name_some

logger = logging.getLogger(__name__)
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".tar", ".npz")

# The names of a training's weights, and of their moving average; the outer name first.
_PLAIN, _AVERAGES = ("model", "state_dict"), ("model_ema", "state_dict_ema")
# The prefixes of wrappers: those of torch for workers and to compile, and Lightning's.
_PREFIX = re.compile(r"(module\.|_orig_mod\.|model\.)+")


def read_weights(path: Path, ema: bool | None = None) -> dict[str, Tensor]:
    """The tensors of a file, by name. No code that the file may hold is run.

    Args:
        path: Ends in one of SUFFIXES, which says how it is read.
        ema: As for `unwrap`.

    Raises:
        UserError: If the file cannot be read, may not be, or holds something else.
    """
    # .npz is for BiT alone.
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{path}: weights are read from files that end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with warnings.catch_warnings(action="ignore"):  # torch's, of what is refused anyway
            if suffix == ".safetensors":
                content = load_file(path)
            elif suffix == ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    content = name_as_timm(arrays)
            else:
                content = torch.load(path, map_location="cpu", weights_only=True)
        return unwrap(content, ema)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # the disk's trouble, not the file's
            raise
        raise UserError(f"{path}: {_explain(error)}") from None
    except Exception as error:  # a damaged pickle can raise any
        raise UserError(f"{path}: {_explain(error)}") from None


def unwrap(content: object, ema: bool | None = None) -> dict[str, Tensor]:
    """The weights themselves, without the training's wrappers and their prefixes.

    Args:
        content: The object that a training saved.
        ema: Take the moving average of the weights; None: where there is one, as timm does, which
            is logged.

    Raises:
        UserError: If an entry is no weight, or there is no average and one is asked for.
    """
    averages = [
        key
        for key in _AVERAGES
        if isinstance(content, dict) and isinstance(content.get(key), dict) and content[key]
    ]
    if ema and not averages:
        raise UserError(f"it holds no moving average ({' or '.join(_AVERAGES)})")
    if averages and ema is None:
        logger.warning("took %s, the moving average; --no-ema takes the others", averages[0])
    for key in _PLAIN if ema is False else [*averages[:1], *_PLAIN]:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not content:
        raise UserError("it holds no weights by their names")
    others = [f"{n} ({_kind(v)})" for n, v in content.items() if not _is_weight(n, v)]
    if others:
        raise UserError(f"it holds what are no weights: {name_some(others, 10)}")
    prefixes = {match and match[0] for match in map(_PREFIX.match, content)}
    prefix = prefixes.pop() if len(prefixes) == 1 else None
    return {name.removeprefix(prefix or ""): tensor for name, tensor in content.items()}


def _is_weight(name: object, value: object) -> bool:
    return isinstance(name, str) and isinstance(value, Tensor) and value.is_floating_point()


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def _explain(error: Exception) -> str:
    """Why a file could not be read."""
    text = str(error)
    if name := refused_class(text):
        return (
            f"refused, since it holds pickled code or objects ({name}) that could run "
            "commands on this computer; ask for the same weights as .safetensors"
        )
    if "weights_only" in text and not isinstance(error, pickle.UnpicklingError):
        return "refused: TorchScript and torch's old tar files can hold code; save a state dict"
    if isinstance(error, pickle.UnpicklingError):
        return "no weights that can be read without running code from the file, or corrupt"
    reason = re.split(r"\.\s|\n", text)[0] or "it ends too early"
    return f"truncated or corrupt weights ({reason}); download or copy it again"
