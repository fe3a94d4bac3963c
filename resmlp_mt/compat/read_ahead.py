"""The threads and processes that read batches ahead, and how they end.

They are of the patch in stopping.py: a training ends when these have ended.
"""

import atexit
import contextlib
import multiprocessing.util  # noqa: F401  # before our own: the last to come ends first
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from queue import Empty

from resmlp_mt.compat.messages import LOADER_KILLED
from resmlp_mt.compat.stopping import PATCH
from resmlp_mt.errors import UserError

# The threads, and what a `DataLoader` with processes gives them. A training holds these.
_readers: weakref.WeakSet = weakref.WeakSet()
_loading: weakref.WeakSet = weakref.WeakSet()
# The processes, held here: one that nobody holds any more may still be there.
_loaders: set[BaseProcess] = set()
for found in (_readers, _loading, _loaders):
    os.register_at_fork(after_in_child=found.clear)  # they are the parent's
_ending = threading.Event()  # set where this process is about to end


@PATCH.replaces("fairseq.data.iterators:BackgroundConsumer.__init__", "d99266db4c90")
def build_reader(build_thread, self, queue, source, *args, **kwargs):
    """Let a thread that reads ahead end after a batch.

    Python unwinds threads that come out of torch while it ends, and C++ answers with an abort.
    """
    build_thread(self, queue, _Batches(source), *args, **kwargs)
    _readers.add(self)


@PATCH.replaces("fairseq.tasks.fairseq_task:FairseqTask.get_batch_iterator", "4a35d598f8f3")
def get_batch_iterator(get_iterator, self, *args, **kwargs):
    """Keep processes beyond an epoch only where the next one has them read."""
    iterator = get_iterator(self, *args, **kwargs)
    kept = getattr(self, "dataset_to_epoch_iter", {})  # a task of others may not have begun as one
    iterator.persistent_workers &= iterator in kept.values()
    return iterator


@atexit.register
def _end_readers() -> None:
    """Wait until no thread reads ahead, or for 10 seconds where a batch takes longer."""
    _ending.set()
    last = time.monotonic() + 10
    for reader in list(_readers):
        while reader.is_alive() and time.monotonic() < last:
            with contextlib.suppress(Empty):  # it may wait for room
                reader._queue.get_nowait()
            reader.join(0.01)
    for batches in list(_loading):
        batches._shutdown_workers()
    for loader in _loaders:
        loader.kill()  # what has not ended by then, and would be waited for


class _Batches:
    """The batches of a `DataLoader`, up to the end of the process."""

    def __init__(self, source):
        self.source = source

    def __iter__(self) -> Iterator:
        """Yield them to a thread that reads ahead.

        The processes that load them inherit that the thread does not hear SIGTERM and Ctrl-C. A
        scheduler and a terminal send these to them too, and it waits for their batches.

        Raises:
            UserError: If such a process was killed.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        batches = iter(self.source)
        if hasattr(batches, "_workers"):
            _loading.add(batches)
            _hold(batches._workers)
        try:
            for batch in batches:
                yield batch
                if _ending.is_set():
                    return
        except (ConnectionError, EOFError):  # in the middle of a batch
            raise UserError(LOADER_KILLED) from None


def _hold(loaders: list[BaseProcess]) -> None:
    """Hold processes for as long as they live."""
    _loaders.difference_update([loader for loader in list(_loaders) if loader.exitcode is not None])
    _loaders.update(loaders)
    for loader in loaders:
        loader.terminate = loader.kill  # torch's last means is a SIGTERM
