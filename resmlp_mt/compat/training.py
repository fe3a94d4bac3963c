"""The training loop: its log, its end, its optimizers."""

import functools
import logging
import math
import os
import signal
import sys
import threading
import time

import torch
from fairseq import checkpoint_utils, optim
from fairseq.logging import progress_bar
from fairseq.nan_detector import NanDetector
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.optim.fused_lamb import FairseqLAMB
from fairseq.trainer import Trainer

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError

logger = logging.getLogger(__name__)


def log_once() -> None:
    """Write a line once to --log-file: fairseq adds a handler for it in every epoch."""

    @patch(progress_bar, "progress_bar")
    def open_bar(progress_bar_, iterator, *args, log_file=None, **kwargs):
        handlers = progress_bar.logger.handlers
        if log_file and os.path.abspath(log_file) in {
            getattr(h, "baseFilename", 0) for h in handlers
        }:
            log_file = None
        return progress_bar_(iterator, *args, log_file=log_file, **kwargs)


def stop_on_sigterm() -> None:
    """Let SIGTERM end a training with a checkpoint, as schedulers expect; a later one kills it.

    Schedulers send it to every process, and torchrun sends a worker what it got itself, so that two
    within a few seconds are one. A validation is broken off: whoever stops us may not wait for its
    end. A worker whose torchrun was killed stops in the same way.
    """

    @patch(Trainer, "__init__")
    def build(build_trainer, self, *args, **kwargs):
        build_trainer(self, *args, **kwargs)
        self.asked_to_stop = self.one_was_asked = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, functools.partial(ask, self))
        if self.data_parallel_world_size > 1:
            threading.Thread(target=watch, args=(self, os.getppid()), daemon=True).start()

    def ask(trainer, number, frame):
        trainer.asked_to_stop = True
        kill_from = time.monotonic() + 5
        signal.signal(number, lambda *_: time.monotonic() > kill_from and die(number))

    def die(number):
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def watch(trainer, parent):
        while os.getppid() == parent:
            time.sleep(1)
        trainer.asked_to_stop = True

    @patch(Trainer, "_aggregate_logging_outputs")
    def aggregate(aggregate_outputs, self, outputs, *stats, **kwargs):
        # All workers stop after the same batch, or none. They learn it from a number more in what
        # fairseq adds up over them anyway; it waits for the GPU at once after this itself.
        stats = (*stats, float(self.asked_to_stop))
        outputs, (*stats, asked) = aggregate_outputs(self, outputs, *stats, **kwargs)
        self.one_was_asked = bool(asked)
        return outputs, stats

    def must_stop(trainer):
        alone = trainer.data_parallel_world_size == 1
        stop = trainer.asked_to_stop if alone else trainer.one_was_asked
        if stop:
            logger.info("SIGTERM: saving and stopping; the same command goes on from here")
        return stop

    @patch(Trainer, "train_step")
    def train_step(step, self, *args, **kwargs):
        logged = step(self, *args, **kwargs)
        if must_stop(self):
            self.cfg.dataset.disable_validation = True
            self.cfg.optimization.max_update = self.get_num_updates()
        return logged

    @patch(Trainer, "get_train_iterator")
    def get_train_iterator(get_iterator, self, *args, **kwargs):
        self.train_iterator = get_iterator(self, *args, **kwargs)
        return self.train_iterator

    @patch(Trainer, "valid_step")
    def valid_step(step, self, *args, **kwargs):
        logged = step(self, *args, **kwargs)
        if must_stop(self):
            # fairseq would take the loss of the batches so far for that of all.
            checkpoint_utils.save_checkpoint(
                self.cfg.checkpoint, self, self.train_iterator, val_loss=None
            )
            sys.exit()
        return logged


def survive_the_search_for_nan() -> None:
    """Let fairseq report where a training diverged, instead of failing while it looks.

    It runs the last batch again with hooks, and torch's hooks on gradients take no encoder whose
    output is a dictionary of lists, as all of fairseq's are.
    """

    @patch(NanDetector, "__init__")
    def build(build_detector, self, model, forward=True, backward=True):
        build_detector(self, model, forward, backward=False)


def fit_optimizers_to_precision() -> None:
    """Take weights one by one where an optimizer needs it, and refuse what it cannot do.

    fairseq joins the weights of --fp16 in one long vector, which adagrad and lamb do not take, and
    asks the user for another flag after the data is loaded.
    """

    @patch(FP16Optimizer, "build_optimizer")
    def build(build_optimizer, cfg, params, **kwargs):
        probe = optim.build_optimizer(cfg.optimizer, [torch.nn.Parameter(torch.zeros(1))])
        if not (cfg.common.bf16 or cfg.common.fp16_no_flatten_grads or probe.supports_flat_params):
            logger.info(f"--optimizer {cfg.optimizer._name} sets --fp16-no-flatten-grads")
            cfg.common.fp16_no_flatten_grads = True
        return build_optimizer(cfg, params, **kwargs)

    @patch(MemoryEfficientFP16Optimizer, "__init__")
    def check(build, self, cfg, params, optimizer, allow_unsupported=False, **kwargs):
        if not (allow_unsupported or optimizer.supports_memory_efficient_fp16):
            flag = "bf16" if cfg.common.bf16 else "fp16"
            raise UserError(
                f"--optimizer {cfg.optimizer._name} needs a copy of the weights in fp32, which "
                f"--memory-efficient-{flag} does not keep: take --{flag}, or --optimizer adam"
            )
        build(self, cfg, params, optimizer, allow_unsupported, **kwargs)


def offer_lamb_without_apex() -> None:
    """Give --optimizer lamb to those without NVIDIA's apex, the only one that fairseq knows."""

    @patch(FairseqLAMB, "__init__")
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
