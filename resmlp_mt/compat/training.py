"""The training loop: its log, its end, its optimizers."""

import functools
import logging
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
from resmlp_mt.optim.lamb import Lamb

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
            time.sleep(0.2)
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

    @patch(Trainer, "_build_optimizer")
    def refuse_processors(build_optimizer, self):
        if self.cfg.common.fp16 and not self.cuda:  # fairseq fails at once, or when it overflows
            raise UserError("--fp16 needs a GPU, and there is none; --bf16 works on CPUs")
        build_optimizer(self)

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
    """Give --optimizer lamb to those without NVIDIA's apex, the only one that fairseq knows.

    Both correct the bias of their averages unless --lamb-no-bias-correction is given.
    """

    @patch(FairseqLAMB, "__init__")
    def build(build_from_apex, self, args, params):
        params = list(params)
        try:
            build_from_apex(self, args, params)
        except ImportError:
            self._optimizer = Lamb(params, **self.optimizer_config)

    @patch(FairseqLAMB, "add_args")
    def add_args(add_args_, parser):
        add_args_(parser)
        parser.add_argument(
            "--lamb-no-bias-correction",
            action="store_true",
            help="leave the averages of the first updates as small as they are",
        )

    config = FairseqLAMB.optimizer_config.fget
    if not hasattr(config, "replaced"):

        @functools.wraps(config)
        def with_bias_correction(self):
            # getattr: the flag is not in checkpoints from before it.
            corrects = not getattr(self.args, "lamb_no_bias_correction", False)
            return config(self) | {"bias_correction": corrects}

        with_bias_correction.replaced = config
        FairseqLAMB.optimizer_config = property(with_bias_correction)
