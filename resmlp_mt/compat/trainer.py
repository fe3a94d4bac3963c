"""Training: it ends with a checkpoint after SIGTERM, and goes on from it, with one worker or more.

A training that is done makes no further update.
"""

import atexit
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
import time

import torch
from fairseq import checkpoint_utils, trainer
from fairseq.distributed.utils import get_global_group

from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError

logger = logging.getLogger(__name__)
_asked = threading.Event()  # to stop; a process has one training


@replaces("fairseq.trainer:Trainer")
class Trainer(trainer.Trainer):
    """fairseq's, which can be stopped, and goes on."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        workers = self.cfg.distributed_training
        if not self.cuda and workers.ddp_backend in ("c10d", "pytorch_ddp"):
            workers.ddp_backend = "legacy_ddp"  # since fairseq names a GPU to torch's own
        _asked.clear()
        self.one_was_asked = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _ask)
        if self.data_parallel_world_size > 1:
            threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
            atexit.register(_end_group)

    def _aggregate_logging_outputs(self, outputs, *stats, **kwargs):
        """Tell all workers that one was asked to stop; all stop after the same batch, or none.

        They learn it from a number more in what fairseq adds up over them anyway. It waits for the
        GPU at once after this itself.
        """
        stats = (*stats, float(_asked.is_set()))
        outputs, (*stats, asked) = super()._aggregate_logging_outputs(outputs, *stats, **kwargs)
        self.one_was_asked = bool(asked)
        return outputs, stats

    def train_step(self, samples, *args, **kwargs):
        """Let an update be the last if it was asked for, which fairseq saves.

        None is made where all were made before: fairseq looks only behind the first.
        """
        if self.get_num_updates() >= (self.cfg.optimization.max_update or math.inf):
            # A checkpoint says that these batches are still to come.
            if (iterator := getattr(self.train_iterator, "_cur_epoch_itr", None)) is not None:
                iterator.n -= len(samples)
            return None
        try:
            logged = super().train_step(samples, *args, **kwargs)
        except Exception as error:
            # fairseq looks for the place where it diverged by hooks of torch, which take no encoder
            # whose output is a dictionary, as all of fairseq's are.
            if isinstance(error.__context__, FloatingPointError):
                raise error.__context__ from None
            raise
        if self._must_stop():
            self.cfg.dataset.disable_validation = True
            self.cfg.optimization.max_update = self.get_num_updates()
        return logged

    def get_train_iterator(self, *args, **kwargs):
        """Keep what a checkpoint says of the place within the epoch."""
        self.train_iterator = super().get_train_iterator(*args, **kwargs)
        return self.train_iterator

    def valid_step(self, *args, **kwargs):
        """Break a validation off: whoever stops us may not wait for its end."""
        logged = super().valid_step(*args, **kwargs)
        if self._must_stop():
            # fairseq would take the loss of the batches so far for that of all.
            checkpoint_utils.save_checkpoint(
                self.cfg.checkpoint, self, self.train_iterator, val_loss=None
            )
            sys.exit()
        return logged

    def save_checkpoint(self, filename, extra_state):
        """Save what --patience counts too, and nothing where a user's mistake ends the training."""
        if isinstance(sys.exc_info()[1], UserError):
            return None
        # Not above: it may be what imports fairseq, and so this module.
        from fairseq_cli.train import should_stop_early

        counted = {"patience": vars(should_stop_early)}
        return super().save_checkpoint(filename, extra_state | counted)

    def load_checkpoint(self, filename, *args, **kwargs):
        """Let every worker load the checkpoint, and notice where they have not the same one."""
        if self.data_parallel_world_size == 1:
            return super().load_checkpoint(filename, *args, **kwargs)
        self.cfg.checkpoint.load_checkpoint_on_all_dp_ranks = True
        there, path = os.path.isfile(filename), os.path.abspath(filename)
        self._agree(there, f"has {'' if there else 'no '}{path}")
        extra_state = super().load_checkpoint(filename, *args, **kwargs)
        self._agree(self.get_num_updates(), f"has {path} of {self.get_num_updates()} updates")
        return extra_state

    def _must_stop(self) -> bool:
        alone = self.data_parallel_world_size == 1
        stop = _asked.is_set() if alone else self.one_was_asked
        if stop:
            logger.info("SIGTERM: saving and stopping; the same command goes on from here")
        return stop

    def _agree(self, fact: bool | int, said: str) -> None:
        """Raise UserError on every worker if for one of them the fact is another."""
        mine = fact, f"worker {self.data_parallel_rank} on {socket.gethostname()} {said}"
        facts = [mine] * self.data_parallel_world_size
        torch.distributed.all_gather_object(facts, mine, group=self.data_parallel_process_group)
        for other in facts:
            if other[0] != facts[0][0]:
                raise UserError(f"{facts[0][1]}, but {other[1]}: all need the same checkpoint")


def _ask(number: int, frame) -> None:
    _asked.set()
    kill_from = time.monotonic() + 5

    def die(*_) -> None:
        if time.monotonic() > kill_from:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(number, die)


def _watch(parent: int) -> None:
    """Stop where the process is gone that started this worker, and would wait for it."""
    while os.getppid() == parent:
        time.sleep(0.2)
    _asked.set()


def _end_group() -> None:
    """End the group of workers before the process.

    A thread of it that lets go of a tensor while Python ends would abort the process.
    """
    if torch.distributed.is_initialized():
        vars(get_global_group).pop("_global_group", None)
        gc.collect()  # models, which hold the group too
        torch.distributed.destroy_process_group()
