"""Several workers: how they meet, on CPUs too, and go on from one checkpoint."""

import datetime
import functools
import gc
import importlib
import os
import socket
import time
import warnings

import torch
from fairseq.distributed.utils import get_global_group
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer

from resmlp_mt.compat.patching import Patch
from resmlp_mt.errors import UserError

PATCH = Patch(
    "workers",
    "counts workers in GPUs, so that each worker on CPUs would train a model of its own. It lets "
    "the first one send the checkpoint to the others, in pickles that torch refuses to load. One "
    "without the file waits for ever. The workers that fairseq starts meet at a port drawn at "
    "random, which may be taken. It leaves threads that may abort the end of a worker",
    "whoever trains with torchrun on CPUs, or with several workers",
    "the workers of torchrun train one model, and each loads the checkpoint. All end with a "
    "message if they have not the same one. The port is free. The threads end before the worker",
)


@PATCH.replaces("fairseq.distributed.utils:infer_init_method", "340321c1d2a1")
def infer(infer_init_method, cfg, *args, **kwargs):
    """Let the workers of torchrun meet, whatever they compute on."""
    workers = os.environ.get("WORLD_SIZE", "1")
    launched = "LOCAL_RANK" in os.environ and int(workers) > 1
    if not launched or cfg.distributed_init_method is not None:
        try:
            infer_init_method(cfg, *args, **kwargs)
        except AssertionError as error:
            if not str(error).startswith("world size is"):
                raise
            raise UserError(
                f"--distributed-world-size {cfg.distributed_world_size}: fairseq starts a "
                f"worker for a GPU, and there are {torch.cuda.device_count()}; start workers "
                "on CPUs with torchrun instead (docs/workers.md)"
            ) from None
        tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
        if int(tasks) > 1 and cfg.distributed_init_method is None:
            raise UserError(
                f"srun started {tasks} tasks, which would each train a model of their own: "
                "start one task a node, and in it torchrun (docs/workers.md)"
            )
        return
    _register_meeting()
    cfg.distributed_init_method = "resmlp-mt://"
    cfg.distributed_world_size, cfg.distributed_rank = int(workers), int(os.environ["RANK"])
    cfg.device_id = int(os.environ["LOCAL_RANK"])
    cfg.distributed_no_spawn = True


@PATCH.replaces("fairseq.distributed.utils:_infer_single_node_init", "91ff8af24600")
def infer_on_one_node(infer_single_node_init, cfg):
    """Let the workers that fairseq starts meet at a port that nothing listens at.

    In a job of Slurm fairseq draws one by the number of the job, and all tasks draw the same.
    """
    if cfg.distributed_port <= 0 and "SLURM_JOB_ID" not in os.environ:
        with socket.create_server(("localhost", 0)) as free:
            cfg.distributed_port = free.getsockname()[1]
    infer_single_node_init(cfg)


@PATCH.replaces(
    "fairseq.models.distributed_fairseq_model:DistributedDataParallel",
    "caa68bcad9ad",
    guards=("fairseq.models.distributed_fairseq_model:DistributedFairseqModel",),
)
def wrap(parallel, module, device_ids, output_device, **kwargs):
    """Name no GPU to torch where the model is on none, and say nothing of a flag's old name."""
    if not next(module.parameters()).is_cuda:
        device_ids = output_device = None
    with warnings.catch_warnings():
        # fairseq has torch's older name for this flag. Users can do nothing about it.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        return parallel(module, device_ids=device_ids, output_device=output_device, **kwargs)


@PATCH.replaces("fairseq.trainer:Trainer.load_checkpoint", "31d0e74e6cc6")
def load(load_checkpoint, self, filename, *args, **kwargs):
    """Let every worker load the checkpoint, and notice where they have not the same one."""
    if self.data_parallel_world_size == 1:
        return load_checkpoint(self, filename, *args, **kwargs)
    self.cfg.checkpoint.load_checkpoint_on_all_dp_ranks = True
    there = PathManager.isfile(filename)
    _agree(there, f"has {'' if there else 'no '}{os.path.abspath(filename)}", self)
    extra_state = load_checkpoint(self, filename, *args, **kwargs)
    updates = self.get_num_updates()
    _agree(updates, f"has {os.path.abspath(filename)} of {updates} updates", self)
    return extra_state


@PATCH.replaces("fairseq.distributed.utils:distributed_main", "239272195925")
def end(distributed_main, *args):
    """End the group of workers before the process.

    A thread of it that lets go of a tensor while Python ends would abort the process. These modules
    of torch would keep a group that is there when they are imported, as optimizers do.
    """
    importlib.import_module("torch.distributed.nn")
    distributed_main(*args)
    if torch.distributed.is_initialized():
        vars(get_global_group).pop("_global_group", None)
        gc.collect()  # models, which hold the group too
        torch.distributed.destroy_process_group()


def count_workers(world_size: int) -> int:
    """How many workers train: those of torchrun, else those that fairseq starts.

    Args:
        world_size: --distributed-world-size, whose default is the number of visible GPUs.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ.get("WORLD_SIZE", "1"))
    return max(world_size, 1)


@functools.cache  # torch takes a name once
def _register_meeting() -> None:
    torch.distributed.register_rendezvous_handler("resmlp-mt", _meet)


def _meet(url: str, timeout: datetime.timedelta, **options):
    """Let the workers that torchrun starts anew meet one another, not those of the time before.

    torchrun keeps one store for all its starts, in which workers find the addresses of those that
    were killed. So the first worker opens a store for this start, and leaves its port in the old.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    shared, *_ = next(torch.distributed.rendezvous("env://", rank, size, timeout=timeout))
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


def _agree(fact: bool | int, said: str, trainer: Trainer) -> None:
    """Raise UserError on every worker if for one of them the fact is another."""
    group = trainer.data_parallel_process_group
    mine = fact, f"worker {trainer.data_parallel_rank} on {socket.gethostname()} {said}"
    facts = [mine] * trainer.data_parallel_world_size
    torch.distributed.all_gather_object(facts, mine, group=group)
    for other in facts:
        if other[0] != facts[0][0]:
            raise UserError(
                f"{facts[0][1]}, but {other[1]}: all need the same checkpoint. Share the folder of "
                "--save-dir among the machines, or copy the checkpoint to each of them"
            )
