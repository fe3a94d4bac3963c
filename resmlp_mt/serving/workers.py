"""Several processes that answer at one port, and the one that watches over them.

Each loads the models for itself, and accepts connections from the same socket. They hear of the end
through a pipe, and heed no signals: a terminal and systemd send these to all processes at once.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from tempfile import TemporaryDirectory

from prometheus_client.multiprocess import mark_process_dead

from resmlp_mt.errors import UserError
from resmlp_mt.serving.buckets import NUMBERS, Buckets
from resmlp_mt.serving.keys import MOST_KEYS
from resmlp_mt.serving.metrics import FOLDER, Metrics, gather
from resmlp_mt.serving.plan import Plan

# What terminals and services are sent.
_SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
_READY, _REFUSED, _LEFT = "ready", "refused", "left"
# One that ended sooner is followed by the next after so long.
_PAUSE_SECONDS = 2


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    started: float
    ready: bool = False


class Workers:
    """Processes that answer at one socket.

    Args:
        plan: What each of them is made of.
        listener: The socket. It is closed when they end.
        count: How many.

    Attributes:
        registry: What all of them count.
    """

    def __init__(self, plan: Plan, listener: socket.socket, count: int):
        self.plan, self.listener, self.count = plan, listener, count
        self.context = get_context("spawn")  # neither torch nor ONNX Runtime can be forked
        self.buckets = self.context.Array("d", NUMBERS * MOST_KEYS if plan.keys else 0)
        self.signals, self.told = self.context.Pipe(duplex=False)
        self.folder = TemporaryDirectory(prefix="resmlp-mt-")  # where they leave their counts
        os.environ[FOLDER] = self.folder.name
        self.registry = gather(self.folder.name)
        self.all: list[_Worker] = []
        self.ending, self.unanswered, self.refusal = False, 0, ""

    def handle_exit(self, *signal_and_frame) -> None:
        """End, as a signal asks; when called again, end without waiting."""
        self.told.send(None)

    def run(self, announce: Callable[[], None]) -> int:
        """Answer until they are told to end.

        Args:
            announce: Called once all of them are there.

        Returns:
            Requests that were not answered.

        Raises:
            UserError: If they cannot start.
        """
        try:
            for _ in range(self.count):
                self.all.append(self._start())
            self._watch(announce)
        finally:
            if not self.ending:  # whatever happened: nobody else would end them
                self._end()
            self.folder.cleanup()
        if self.refusal:
            raise UserError(self.refusal)
        return self.unanswered

    def _watch(self, announce: Callable[[], None]) -> None:
        announced = False
        while self.all:
            by_pipe = {worker.pipe: worker for worker in self.all}
            by_sentinel = {worker.process.sentinel: worker for worker in self.all}
            heard = wait([self.signals, *by_pipe, *by_sentinel])
            if self.signals in heard:
                self.signals.recv()
                self._end()
            for pipe in by_pipe.keys() & heard:
                self._hear(by_pipe[pipe])
            for sentinel in by_sentinel.keys() & heard:
                self._replace(by_sentinel[sentinel], announced)
            started = self.all and all(worker.ready for worker in self.all)
            if started and not announced and not self.ending:
                announced = True
                announce()

    def _start(self) -> _Worker:
        here, there = self.context.Pipe()
        if self.plan.keys:
            self.plan.keys.read()  # a worker begins with the last ones that could be read
        arguments = self.plan, self.listener, there, self.buckets
        process = self.context.Process(target=_work, args=arguments)
        # What is blocked here stays blocked in the worker, from its first moment on.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        there.close()
        return _Worker(process, here, time.monotonic())

    def _hear(self, worker: _Worker) -> bool:
        """Hear what a worker says; returns whether it said something."""
        try:
            said, value = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()  # `_replace` comes next
            return False
        if said == _READY:
            worker.ready = True
        elif said == _REFUSED:
            self.refusal = value
        else:
            self.unanswered += value
        return True

    def _end(self) -> None:
        self.ending = True
        self.listener.close()
        for worker in self.all:
            with suppress(OSError):  # where it has ended
                worker.pipe.send(None)

    def _replace(self, worker: _Worker, announced: bool) -> None:
        """Forget a worker that has ended; start another if it should not have."""
        while worker.pipe.poll() and self._hear(worker):
            pass  # its last words
        worker.process.join()
        worker.pipe.close()
        self.all.remove(worker)
        mark_process_dead(worker.process.pid, self.folder.name)
        if self.ending:
            return
        if not announced:
            self.refusal = self.refusal or f"a worker ended with status {worker.process.exitcode}"
            return self._end()
        said = f"worker {worker.process.pid} ended with status {worker.process.exitcode}"
        print(f"{said}; another is started", file=sys.stderr, flush=True)
        if time.monotonic() - worker.started < _PAUSE_SECONDS:
            time.sleep(_PAUSE_SECONDS)
        self.all.append(self._start())


def _work(plan: Plan, listener: socket.socket, pipe: Connection, buckets) -> None:
    """Be a worker, whose signals are blocked: it ends when it is told to."""
    try:
        server = plan.build(Metrics(), Buckets(buckets, buckets.get_lock()))
    except UserError as error:
        pipe.send((_REFUSED, str(error)))
        return
    server.heeds_signals = False

    def obey() -> None:
        while True:
            try:
                pipe.recv()
            except EOFError:  # nobody watches any more
                return server.end()
            server.end()

    threading.Thread(target=obey, daemon=True).start()
    pipe.send((_READY, None))
    server.run(sockets=[listener])
    pipe.send((_LEFT, server.unanswered))
