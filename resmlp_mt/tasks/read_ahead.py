"""The threads and processes that read batches ahead end before the process that trains.

fairseq's threads may abort the end of a process, which then has another exit status: Python unwinds
threads that come out of torch while it ends, and C++ answers with an abort. SIGTERM and Ctrl-C end
the processes that read for it.
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
from queue import Empty

from fairseq.data.iterators import BufferedIterator

from resmlp_mt.compat.messages import LOADER_KILLED
from resmlp_mt.errors import UserError

# Iterators that read ahead, and those of a `DataLoader` with processes. A training holds these.
_readers: weakref.WeakSet = weakref.WeakSet()
_loading: weakref.WeakSet = weakref.WeakSet()
for found in (_readers, _loading):
    os.register_at_fork(after_in_child=found.clear)  # they are the parent's
_ending = threading.Event()  # set where this process is about to end


def end_with_process(ahead: BufferedIterator) -> None:
    """Let the readers of an iterator, which has not begun, end before the process."""
    ahead._iterable = _Batches(ahead._iterable)
    _readers.add(ahead)


@atexit.register
def _end_readers() -> None:
    """Wait until no thread reads ahead, or for 10 seconds where a batch takes longer."""
    _ending.set()
    last = time.monotonic() + 10
    for ahead in list(_readers):
        while (
            ahead._consumer is not None and ahead._consumer.is_alive() and time.monotonic() < last
        ):
            with contextlib.suppress(Empty):  # it may wait for room
                ahead._queue.get_nowait()
            ahead._consumer.join(0.01)
    for batches in list(_loading):
        batches._shutdown_workers()
    for child in multiprocessing.active_children():
        if "terminate" in vars(child):  # it has not ended by then, and would be waited for
            child.kill()


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
            for loader in batches._workers:
                loader.terminate = loader.kill  # torch's last means is a SIGTERM
        try:
            for batch in batches:
                yield batch
                if _ending.is_set():
                    return
        except (ConnectionError, EOFError):  # in the middle of a batch
            raise UserError(LOADER_KILLED) from None
