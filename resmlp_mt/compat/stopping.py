"""How a training ends: with a checkpoint after SIGTERM.

A training that is done makes no further update.
"""

import functools
import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer

from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError

logger = logging.getLogger(__name__)

PATCH = Patch(
    "stopping",
    "is killed by SIGTERM, and loses what was trained since the last checkpoint. Workers that it "
    "started run on without the process that waits for them. A training that has made all of its "
    "updates makes one more each time that its command is given. The thread that reads batches "
    "ahead may abort the end of a process, which then has another exit status. SIGTERM and Ctrl-C "
    "end the processes that read for it. Where an epoch has an iterator of its own, as data in "
    "several folders has, those of the one before are kept, and it waits 5 seconds for each",
    "whoever trains under a scheduler that stops jobs and starts them again (Slurm, Kubernetes, "
    "spot machines), or with --num-workers",
    "all workers save a checkpoint after the same batch and end. A later SIGTERM kills. "
    "Schedulers send it to every process, and torchrun sends a worker what it got itself. So two "
    "within a few seconds are one. A training that is done is validated and saved as it is. The "
    "thread ends before the process. Those that read for it hear neither signal, and end with "
    "their epoch or with the training",
)


@PATCH.replaces("fairseq.trainer:Trainer.__init__", "15dd9cb1abfb")
def build(build_trainer, self, *args, **kwargs):
    """Listen for SIGTERM, and for the end of torchrun."""
    build_trainer(self, *args, **kwargs)
    self.asked_to_stop = self.one_was_asked = False
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, functools.partial(_ask, self))
    if self.data_parallel_world_size > 1:
        threading.Thread(target=_watch, args=(self, os.getppid()), daemon=True).start()


@PATCH.replaces("fairseq.trainer:Trainer._aggregate_logging_outputs", "f13df5e2668d")
def aggregate(aggregate_outputs, self, outputs, *stats, **kwargs):
    """Tell all workers that one was asked to stop.

    All stop after the same batch, or none. They learn it from a number more in what fairseq adds up
    over them anyway; it waits for the GPU at once after this itself.
    """
    stats = (*stats, float(self.asked_to_stop))
    outputs, (*stats, asked) = aggregate_outputs(self, outputs, *stats, **kwargs)
    self.one_was_asked = bool(asked)
    return outputs, stats


@PATCH.replaces("fairseq.trainer:Trainer.train_step", "d3ad29a10ce7")
def train_step(step, self, samples, *args, **kwargs):
    """Let an update be the last if it was asked for, which fairseq saves.

    None is made where all were made before: fairseq looks only behind the first.
    """
    if self.get_num_updates() >= (self.cfg.optimization.max_update or math.inf):
        _put_back(self, len(samples))
        return None
    logged = step(self, samples, *args, **kwargs)
    if _must_stop(self):
        self.cfg.dataset.disable_validation = True
        self.cfg.optimization.max_update = self.get_num_updates()
    return logged


@PATCH.replaces("fairseq.trainer:Trainer.get_train_iterator", "1ded4946c070")
def get_train_iterator(get_iterator, self, *args, **kwargs):
    """Keep what a checkpoint says of the place within the epoch."""
    self.train_iterator = get_iterator(self, *args, **kwargs)
    return self.train_iterator


@PATCH.replaces("fairseq.trainer:Trainer.valid_step", "ef7afaba9529")
def valid_step(step, self, *args, **kwargs):
    """Break a validation off: whoever stops us may not wait for its end."""
    logged = step(self, *args, **kwargs)
    if _must_stop(self):
        # fairseq would take the loss of the batches so far for that of all.
        checkpoint_utils.save_checkpoint(
            self.cfg.checkpoint, self, self.train_iterator, val_loss=None
        )
        sys.exit()
    return logged


@PATCH.replaces(
    "torch.multiprocessing:spawn", "c2a32fa44fa2", guards=("fairseq.distributed.utils:call_main",)
)
def spawn(start, fn, *args, **kwargs):
    """Hand SIGTERM to the workers that fairseq starts itself, and say what they complain of.

    Workers of other programs are theirs, and so are their signals.
    """
    if fn is not distributed_utils.distributed_main:
        return start(fn, *args, **kwargs)

    def forward(number, frame):
        for worker in multiprocessing.active_children():
            os.kill(worker.pid, number)

    # Python lets no other thread set a handler.
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, forward) if in_main else None
    try:
        return start(fn, *args, **kwargs)
    except torch.multiprocessing.ProcessRaisedException as error:
        kind, _, said = str(error).strip().splitlines()[-1].partition(": ")
        if kind == f"{UserError.__module__}.{UserError.__name__}":
            raise UserError(said) from None
        raise
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _ask(trainer: Trainer, number: int, frame) -> None:
    trainer.asked_to_stop = True
    kill_from = time.monotonic() + 5
    signal.signal(number, lambda *_: time.monotonic() > kill_from and _die(number))


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _watch(trainer: Trainer, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    trainer.asked_to_stop = True


def _put_back(trainer: Trainer, batches: int) -> None:
    """Let a checkpoint say that these batches, the last that were taken, are still to come."""
    iterator = getattr(trainer.train_iterator, "_cur_epoch_itr", None)
    if iterator is not None:  # else it counts none
        iterator.n -= batches


def _must_stop(trainer: Trainer) -> bool:
    alone = trainer.data_parallel_world_size == 1
    stop = trainer.asked_to_stop if alone else trainer.one_was_asked
    if stop:
        logger.info("SIGTERM: saving and stopping; the same command goes on from here")
    return stop
