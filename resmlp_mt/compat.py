"""The seam to fairseq and torch of today. Each patch has a guard, a reason and a test.

fairseq imports this plugin while it parses the command line, before it loads any checkpoint and
before hydra composes the configuration, so that what is put right here holds for all commands.
"""

import argparse
import collections
import functools
import importlib.util
import inspect
import logging
import pickle
import typing
import warnings
from pathlib import Path

import numpy
import omegaconf
import torch

# Importing fairseq asks for tensorboardX, which nothing here needs.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from fairseq import checkpoint_utils  # noqa: E402

from resmlp_mt.errors import UserError  # noqa: E402

# Said by every fairseq command on today's libraries, and nothing that a user could act on.
_NOISE = (
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\s*The version_base parameter is not specified",
    r"In '.*': Usage of deprecated keyword in package header",
    r"\s*'.*' is validated against ConfigStore schema with the same name",
    r"\s*The strict flag in the compose API is deprecated",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"Support for mismatched key_padding_mask and attn_mask is deprecated",
    r"enable_nested_tensor is True, but",
    r"The PyTorch API of nested tensors is in prototype stage",
    r"amp_C fused kernels unavailable",
)


def silence_noise() -> None:
    """Drop the warnings in _NOISE, and no others."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message)


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
    load = checkpoint_utils.load_checkpoint_to_cpu
    if hasattr(load, "__wrapped__"):
        return

    @functools.wraps(load)
    def load_or_explain(path, *args, **kwargs):
        try:
            return load(path, *args, **kwargs)
        except (FileNotFoundError, IsADirectoryError):
            raise UserError(f"{path}: no such checkpoint") from None
        except pickle.UnpicklingError as error:
            raise UserError(f"{path}: {_explain_refusal(str(error))}") from None
        except (EOFError, RuntimeError) as error:
            reason = str(error).strip().splitlines() or ["it ends too early"]
            raise UserError(
                f"{path}: truncated or corrupt checkpoint ({reason[0]}); copy it again"
            ) from None
        except (KeyError, TypeError, AttributeError, IndexError):
            raise UserError(
                f"{path}: not a checkpoint of fairseq (it holds no model with its configuration)"
            ) from None

    checkpoint_utils.load_checkpoint_to_cpu = load_or_explain


def _explain_refusal(error: str) -> str:
    for line in error.splitlines():
        if "Unsupported global: GLOBAL" in line:
            name = line.split("GLOBAL", 1)[1].split()[0]
            return (
                f"refused, since it holds pickled code or objects ({name}) that could run commands "
                "on this computer; use a checkpoint that fairseq wrote"
            )
    return "not a checkpoint, or a corrupt one"


def check_apex() -> str | None:
    """What is wrong with the installed apex, or None.

    PyPI's `apex` is a web toolkit. fairseq tries to import NVIDIA's library of that name and falls
    back without a word.
    """
    spec = importlib.util.find_spec("apex")
    if spec is None or spec.submodule_search_locations is None:
        return None
    if any(
        (Path(folder) / "multi_tensor_apply").is_dir() for folder in spec.submodule_search_locations
    ):
        return None
    return (
        "the installed package 'apex' is not NVIDIA's library but a web toolkit of that name: "
        "remove it with 'pip uninstall apex'. Nothing here needs apex"
    )


def apply() -> None:
    """Apply every patch; the second time changes nothing."""
    silence_noise()
    allow_harmless_classes()
    explain_broken_checkpoints()
    if complaint := check_apex():
        warnings.warn(complaint, stacklevel=2)
