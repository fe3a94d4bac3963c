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
import math
import os
import pickle
import shutil
import signal
import sys
import threading
import typing
import warnings
from pathlib import Path

import numpy
import omegaconf
import torch

# Importing fairseq asks for tensorboardX, which nothing here needs.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from fairseq import checkpoint_utils, options, search, utils  # noqa: E402
from fairseq.data import data_utils  # noqa: E402
from fairseq.distributed import utils as distributed_utils  # noqa: E402
from fairseq.file_io import PathManager  # noqa: E402
from fairseq.logging import progress_bar  # noqa: E402
from fairseq.models import distributed_fairseq_model  # noqa: E402
from fairseq.nan_detector import NanDetector  # noqa: E402
from fairseq.optim import FairseqOptimizer  # noqa: E402
from fairseq.optim.fused_lamb import FairseqLAMB  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402

from resmlp_mt.data.checkpoints import find_checkpoint  # noqa: E402
from resmlp_mt.errors import UserError, explain, refused_class  # noqa: E402

logger = logging.getLogger(__name__)

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


def _patch(owner, name: str):
    """Decorate what shall stand in place of `owner.name`; it gets the original as first argument.

    What was replaced before stays: applying a patch twice changes nothing.
    """
    original = getattr(owner, name)

    def install(replacement):
        if not hasattr(original, "replaced"):

            @functools.wraps(original)
            def patched(*args, **kwargs):
                return replacement(original, *args, **kwargs)

            patched.replaced = original
            setattr(owner, name, patched)

    return install


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

    @_patch(checkpoint_utils, "load_checkpoint_to_cpu")
    def load_or_explain(load, path, *args, **kwargs):
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


def _explain_refusal(error: str) -> str:
    if name := refused_class(error):
        return (
            f"refused, since it holds pickled code or objects ({name}) that could run "
            "commands on this computer; use a checkpoint that fairseq wrote"
        )
    return "not a checkpoint, or a corrupt one"


def keep_last_batch() -> None:
    """Make fairseq translate, validate and train on every sentence.

    It drops the last batch where the number of its sentences is not a multiple of
    --required-batch-size-multiple (8 unless told), so that up to seven and more lines of a test
    set would have no translation and no part in the score.
    """

    @_patch(data_utils, "batch_by_size")
    def batch_all(batch, indices, *args, **kwargs):
        batches = batch(indices, *args, **kwargs)
        # Batches are slices of the indices, in their order.
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches


def mend_diverse_beam() -> None:
    """Make --diverse-beam-groups work beyond the first batch.

    fairseq indexes the overlap of the groups, which has a row for each sentence of a batch, with
    the sentences' numbers in the data set.
    """

    @_patch(search.DiverseBeamSearch, "step")
    def step_by_place(
        step, self, number, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None
    ):
        if number == 0:
            self.sentences = original_batch_idxs
        # Finished sentences leave the batch; the rows of the overlap stay.
        places = (original_batch_idxs[:, None] == self.sentences).int().argmax(1)
        return step(self, number, lprobs, scores, prev_output_tokens, places)


def log_once() -> None:
    """Write a line once to --log-file: fairseq adds a handler for it in every epoch."""

    @_patch(progress_bar, "progress_bar")
    def open_bar(progress_bar_, iterator, *args, log_file=None, **kwargs):
        handlers = progress_bar.logger.handlers
        if log_file and os.path.abspath(log_file) in {
            getattr(h, "baseFilename", 0) for h in handlers
        }:
            log_file = None
        return progress_bar_(iterator, *args, log_file=log_file, **kwargs)


def take_archives_for_data() -> None:
    """Let the data be a .tar of images: fairseq looks for forgotten valid1, valid2 ... in it."""

    @_patch(data_utils, "_find_extra_valid_paths")
    def find_in_folders(find, path):
        return find(path) if all(os.path.isdir(part) for part in utils.split_paths(path)) else set()


def mend_parsed_flags() -> None:
    """Put right what fairseq and torch make of some flags.

    Workers on CPUs cannot talk by NCCL, fairseq's default. fairseq takes --bf16 for a wish to train
    on a TPU, on CPUs and GPUs too, and torch's fused attention is slower than plain products in
    bf16 on CPUs. And fairseq trains from scratch without a word where --finetune-from-model names
    a folder; here a folder, or a model that comes with the package, stands for the checkpoint in
    it, and for --path as well.
    """

    @_patch(options, "parse_args_and_arch")
    def parse(parse_args_and_arch, *args, **kwargs):
        parsed = parse_args_and_arch(*args, **kwargs)
        namespace = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(namespace, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
            namespace.tpu = False
        on_cpu = getattr(namespace, "cpu", False) or not torch.cuda.is_available()
        if on_cpu and getattr(namespace, "distributed_backend", None) == "nccl":
            namespace.distributed_backend = "gloo"
        if getattr(namespace, "bf16", False) and on_cpu:
            torch.backends.cuda.enable_flash_sdp(False)  # whatever its name, on CPUs too
        if start := getattr(namespace, "finetune_from_model", None):
            namespace.finetune_from_model = str(find_checkpoint(start))
        if os.path.isdir(path := getattr(namespace, "path", None) or ""):
            namespace.path = str(find_checkpoint(path))
        return parsed


def join_workers() -> None:
    """Let the workers of torchrun train together on CPUs too.

    fairseq counts workers in GPUs: without one, each worker would train a model of its own, and
    torch's DistributedDataParallel would be told to use a GPU.
    """

    @_patch(distributed_utils, "infer_init_method")
    def infer(infer_init_method, cfg, *args, **kwargs):
        workers = os.environ.get("WORLD_SIZE", "1")
        launched = "LOCAL_RANK" in os.environ and int(workers) > 1
        if not launched or cfg.distributed_init_method is not None:
            infer_init_method(cfg, *args, **kwargs)
            tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
            if int(tasks) > 1 and cfg.distributed_init_method is None:
                raise UserError(
                    f"srun started {tasks} tasks, which would each train a model of their own: "
                    "start one task a node, and in it torchrun (docs/workers.md)"
                )
            return
        cfg.distributed_init_method = "env://"
        cfg.distributed_world_size, cfg.distributed_rank = int(workers), int(os.environ["RANK"])
        cfg.device_id = int(os.environ["LOCAL_RANK"])
        cfg.distributed_no_spawn = True

    @_patch(distributed_fairseq_model, "DistributedDataParallel")
    def wrap(parallel, module, device_ids, output_device, **kwargs):
        if not next(module.parameters()).is_cuda:
            device_ids = output_device = None
        return parallel(module, device_ids=device_ids, output_device=output_device, **kwargs)


def write_whole_checkpoints() -> None:
    """Let a checkpoint appear whole or not at all.

    fairseq copies an epoch's checkpoint to its other names in place, where a kill leaves half of
    one, and answers a full disk by writing twice more behind what was written.
    """

    def place(filename: str, write) -> None:
        partial = f"{filename}.tmp"  # one name, so that killed trainings do not fill the disk
        try:
            with open(partial, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, filename)
        except OSError as error:
            Path(partial).unlink(missing_ok=True)
            raise UserError(
                f"{filename}: {error.strerror}: it was not written, the checkpoints before it are "
                "whole. Make room and give the same command again; it goes on from the last one"
            ) from error

    @_patch(checkpoint_utils, "torch_persistent_save")
    def save(_, obj, filename, async_write=False):
        place(filename, lambda stream: torch.save(obj, stream))

    @_patch(PathManager, "copy")
    def copy(_, src_path, dst_path, overwrite=False):
        with open(src_path, "rb") as source:
            place(dst_path, lambda stream: shutil.copyfileobj(source, stream))
        return True


def stop_on_sigterm() -> None:
    """Let SIGTERM end a training with a checkpoint, as schedulers expect; a second one kills it."""

    @_patch(Trainer, "__init__")
    def build(build_trainer, self, *args, **kwargs):
        build_trainer(self, *args, **kwargs)
        self.asked_to_stop = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, functools.partial(ask, self))

    def ask(trainer, number, frame):
        trainer.asked_to_stop = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @_patch(Trainer, "train_step")
    def train_step(step, self, *args, **kwargs):
        logged = step(self, *args, **kwargs)
        stop = self.asked_to_stop
        if self.data_parallel_world_size > 1:  # all at the same update, or none
            stop = torch.tensor(float(stop), device=self.device)
            torch.distributed.all_reduce(stop, group=self.data_parallel_process_group)
        if stop:
            logger.info("SIGTERM: saving and stopping; the same command goes on from here")
            # Whoever stops us may not wait for a validation.
            self.cfg.dataset.disable_validation = True
            self.cfg.optimization.max_update = self.get_num_updates()
        return logged


def survive_the_search_for_nan() -> None:
    """Let fairseq report where a training diverged, instead of failing while it looks.

    It runs the last batch again with hooks, and torch's hooks on gradients take no encoder whose
    output is a dictionary of lists, as all of fairseq's are.
    """

    @_patch(NanDetector, "__init__")
    def build(build_detector, self, model, forward=True, backward=True):
        build_detector(self, model, forward, backward=False)


def offer_lamb_without_apex() -> None:
    """Give --optimizer lamb to those without NVIDIA's apex, the only one that fairseq knows."""

    @_patch(FairseqLAMB, "__init__")
    def build(build_from_apex, self, args, params):
        try:
            build_from_apex(self, args, params)
        except ImportError:
            try:
                from pytorch_optimizer import Lamb
            except ImportError:
                raise UserError(
                    "--optimizer lamb needs pytorch_optimizer: pip install 'resmlp_mt[image]'"
                ) from None
            # Weight decay within the update, the global gradient norm at most 1 and no limit to a
            # weight's norm, as apex's; unlike apex's without bias correction. The first steps
            # would be ten times as long without `adam_debias`.
            self._optimizer = Lamb(
                params,
                **self.optimizer_config,
                weight_decouple=False,
                pre_norm=True,
                max_grad_norm=1.0,
                adam_debias=True,
            )
            self._optimizer.clamp = math.inf


def refuse_misfit_optimizers() -> None:
    """Name an optimizer state that is of other sizes than the model, which would fail at a step.

    A model may be loaded into one of other sizes (a Toeplitz matrix, the matrices of an image
    model), but training cannot go on there with what the optimizer knew of the old one.
    """

    @_patch(FairseqOptimizer, "load_state_dict")
    def load(load_state, self, *args, **kwargs):
        load_state(self, *args, **kwargs)
        for parameter, state in self.optimizer.state.items():
            for name in ("exp_avg", "sum", "momentum_buffer"):
                if name in state and state[name].shape != parameter.shape:
                    raise UserError(
                        "the checkpoint's optimizer knows a model of other sizes: train with the "
                        "sizes of the checkpoint, or start the optimizer anew with "
                        "--reset-optimizer, or from the weights alone with --finetune-from-model"
                    )


def exit_with_explanation() -> None:
    """Let fairseq's own programs end with status 2 and one line where the user can put it right."""
    if (
        not Path(sys.argv[0]).name.startswith("fairseq-")
        or sys.excepthook is not sys.__excepthook__
    ):
        return

    def hook(kind, error, trace):
        if text := explain(error):
            print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr)
            sys.exit(2)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook


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
    log_once()
    take_archives_for_data()
    mend_parsed_flags()
    join_workers()
    write_whole_checkpoints()
    stop_on_sigterm()
    survive_the_search_for_nan()
    offer_lamb_without_apex()
    refuse_misfit_optimizers()
    exit_with_explanation()
    if complaint := check_apex():
        warnings.warn(complaint, stacklevel=2)
