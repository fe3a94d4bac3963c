"""Several workers: how they meet, on CPUs too, and go on from one checkpoint."""

import datetime
import functools
import importlib
import multiprocessing
import os
import secrets
import signal
import socket
import threading
import time
from contextlib import suppress

import torch

from resmlp_mt.compat.patching import replaces
from resmlp_mt.errors import UserError


@replaces("fairseq.distributed.utils:infer_init_method")
def infer(infer_init_method, cfg, *args, **kwargs):
    """Let the workers of torchrun meet, whatever they compute on."""
    workers = os.environ.get("WORLD_SIZE", "1")
    launched = "LOCAL_RANK" in os.environ and int(workers) > 1
    if launched and cfg.distributed_init_method is None:
        _register_meeting()
        cfg.distributed_init_method = "resmlp-mt://"
        cfg.distributed_world_size, cfg.distributed_rank = int(workers), int(os.environ["RANK"])
        cfg.device_id = int(os.environ["LOCAL_RANK"])
        cfg.distributed_no_spawn = True
        return
    try:
        infer_init_method(cfg, *args, **kwargs)
    except AssertionError as error:
        if not str(error).startswith("world size is"):
            raise
        raise UserError(
            f"--distributed-world-size {cfg.distributed_world_size}: fairseq starts a worker for a "
            f"GPU, and there are {torch.cuda.device_count()}; start workers on CPUs with torchrun "
            "instead (docs/workers.md)"
        ) from None
    tasks, method = os.environ.get("SLURM_STEP_NUM_TASKS", "1"), cfg.distributed_init_method
    if int(tasks) > 1 and method is None:
        raise UserError(
            f"srun started {tasks} tasks: start one a node, with torchrun (docs/workers.md)"
        )
    # In a job of Slurm fairseq draws a port by the number of the job, and all tasks draw the same.
    if method == f"tcp://localhost:{cfg.distributed_port}" and "SLURM_JOB_ID" not in os.environ:
        cfg.distributed_port = find_port()
        cfg.distributed_init_method = f"tcp://localhost:{cfg.distributed_port}"
    spawns = method is not None and not cfg.distributed_no_spawn
    if spawns and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _forward)


def find_port() -> int:
    """A free port, below those that systems give to connections, one of which may take it first."""
    while True:
        port = 10_000 + secrets.randbelow(10_000)
        with suppress(OSError), socket.create_server(("", port)):
            return port


def count_workers(world_size: int) -> int:
    """How many workers train: those of torchrun, else by --distributed-world-size."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ.get("WORLD_SIZE", "1"))
    return max(world_size, 1)


def _forward(number: int, frame) -> None:
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, number)


@functools.cache  # torch takes a name once
def _register_meeting() -> None:
    # Else it keeps a group that is there when an optimizer imports it.
    importlib.import_module("torch.distributed.nn")
    torch.distributed.register_rendezvous_handler("resmlp-mt", _meet)


def _meet(url: str, timeout: datetime.timedelta, **options):
    """Let the workers that torchrun starts anew meet one another, not those of the time before.

    torchrun keeps one store for all its starts, in which workers find the addresses of those that
    were killed. So the first worker opens a store for this start, and leaves its port in the old.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        shared, *_ = next(torch.distributed.rendezvous("env://", rank, size, timeout=timeout))
    except torch.distributed.DistNetworkError as error:
        place = ":".join(os.environ[f"MASTER_{part}"] for part in ("ADDR", "PORT"))
        raise UserError(f"MASTER_ADDR:MASTER_PORT = {place}: {error}") from None
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        store = shared  # the first worker opened it
    elif rank == 0:
        host = os.environ["MASTER_ADDR"]
        store = torch.distributed.TCPStore(
            host, 0, size, is_master=True, timeout=timeout, wait_for_workers=False
        )
        shared.set("resmlp-mt/port", str(store.port))
    else:
        store = _find_store(shared, size, timeout)
    yield store, rank, size


def _find_store(shared, size: int, timeout: datetime.timedelta):
    """The store that the first worker opened; the port may still be of one that is dead."""
    host, end = os.environ["MASTER_ADDR"], time.monotonic() + timeout.total_seconds()
    while True:
        port = int(shared.get("resmlp-mt/port"))
        try:
            socket.create_connection((host, port), timeout=10).close()
            return torch.distributed.TCPStore(host, port, size, is_master=False, timeout=timeout)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
