"""The seam to fairseq and torch of today. Each patch has a guard, a reason and a test.

fairseq imports this plugin while it parses the command line, before it loads any checkpoint and
before hydra composes the configuration, so that what is put right here holds for all commands.
"""

import argparse
import collections
import errno
import functools
import importlib.util
import inspect
import logging
import pickle
import re
import typing
import warnings
from pathlib import Path

import numpy
import omegaconf
import torch

# Importing fairseq asks for tensorboardX, which nothing here needs.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from fairseq import checkpoint_utils, search  # noqa: E402
from fairseq.data import data_utils  # noqa: E402

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
    """Drop the warnings in _NOISE, and no others; take back fairseq's logging of all libraries."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message)
    # Importing fairseq's speech models sets the root logger to DEBUG.
    if logging.getLogger().level == logging.DEBUG:
        logging.getLogger().setLevel(logging.INFO)


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
        except (EOFError, RuntimeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise  # the disk's trouble, not the file's
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
    # torch says "Unsupported global: GLOBAL x.y" or "Trying to load unsupported GLOBAL x.y".
    if name := re.search(r"[Uu]nsupported (?:global: )?GLOBAL (\S+)", error):
        return (
            f"refused, since it holds pickled code or objects ({name.group(1)}) that could run "
            "commands on this computer; use a checkpoint that fairseq wrote"
        )
    return "not a checkpoint, or a corrupt one"


def keep_last_batch() -> None:
    """Make fairseq translate, validate and train on every sentence.

    It drops the last batch where the number of its sentences is not a multiple of
    --required-batch-size-multiple (8 unless told), so that up to seven and more lines of a test
    set would have no translation and no part in the score.
    """
    batch = data_utils.batch_by_size
    if hasattr(batch, "__wrapped__"):
        return

    @functools.wraps(batch)
    def batch_all(indices, *args, **kwargs):
        batches = batch(indices, *args, **kwargs)
        # Batches are slices of the indices, in their order.
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches

    data_utils.batch_by_size = batch_all


def mend_diverse_beam() -> None:
    """Make --diverse-beam-groups work beyond the first batch.

    fairseq indexes the overlap of the groups, which has a row for each sentence of a batch, with
    the sentences' numbers in the data set.
    """
    step = search.DiverseBeamSearch.step
    if hasattr(step, "__wrapped__"):
        return

    @functools.wraps(step)
    def step_by_place(
        self, number, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None
    ):
        if number == 0:
            self.sentences = original_batch_idxs
        # Finished sentences leave the batch; the rows of the overlap stay.
        places = (original_batch_idxs[:, None] == self.sentences).int().argmax(1)
        return step(self, number, lprobs, scores, prev_output_tokens, places)

    search.DiverseBeamSearch.step = step_by_place


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
    keep_last_batch()
    mend_diverse_beam()
    if complaint := check_apex():
        warnings.warn(complaint, stacklevel=2)
