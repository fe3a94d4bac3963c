"""Work on many blocks side by side, in order and in bounded memory."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection, parent_process
from typing import Any, TypeVar

from resmlp_mt.errors import UserError

_Block, _Result = TypeVar("_Block"), TypeVar("_Result")
_AHEAD = 3  # blocks a process: one at work, the others ready, so that none waits

_work: Callable[[Any], Any]


def map_blocks(
    work: Callable[[_Block], _Result], blocks: Iterable[_Block], workers: int
) -> Iterator[tuple[_Block, _Result]]:
    """Yield each block with what `work` makes of it, in the order of the blocks.

    Blocks are read a few ahead. With one worker, this process does it all.

    Raises:
        UserError: If a process was killed. What `work` raises comes out as it is.
    """
    if workers == 1:
        for block in blocks:
            yield block, work(block)
        return
    blocks = iter(blocks)
    pool = ProcessPoolExecutor(workers, initializer=_start, initargs=(work,))
    try:
        waiting: deque[tuple[_Block, Future]] = deque()
        while True:
            for block in islice(blocks, _AHEAD * workers - len(waiting)):
                waiting.append((block, pool.submit(_run, block)))
            if not waiting:
                return
            block, future = waiting.popleft()
            yield block, future.result()
    except BrokenProcessPool:
        raise UserError(
            "a process was killed, perhaps for want of memory; try fewer --workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(work: Callable[[Any], Any]) -> None:
    """Set up a process, before its first block."""
    global _work
    _work = work
    # The first process is told to stop, and ends the others. They must not outlive it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _run(block: Any) -> Any:
    return _work(block)
