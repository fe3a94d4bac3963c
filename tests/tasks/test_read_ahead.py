"""Readers ahead of batches end before their process, whose exit status stays its own."""

import signal
from pathlib import Path

import pytest
from cli.commands import run

from resmlp_mt.compat.messages import LOADER_KILLED

BATCHES = """
import gc, multiprocessing, os, sys
import resmlp_mt.plugin
from tasks.test_batches import Sentences
from resmlp_mt.compat.messages import explain
from resmlp_mt.tasks.batches import AllInBatches, WorkersMayChange

def batch(collate=list, workers=1):
    one_by_one = [[i] for i in range(99)]
    return WorkersMayChange(
        Sentences([5] * 99), collate, one_by_one, num_workers=workers, buffer_size=2,
        persistent_workers=True,
    )
"""


def execute(script, *arguments, **options):
    """Run a script, which may import what the tests have, in a process of its own."""
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return run("python", "-c", BATCHES + script, *arguments, env=paths, **options)


# torch computes each batch, in a thread that is at work when the process ends.
READ = """
import torch
next(batch(lambda _: (torch.rand(300, 300) @ torch.rand(300, 300)).sum(), 0).next_epoch_itr())
sys.exit(2)
"""
LOST = """
batches = batch()
next(epoch := batches.next_epoch_itr())
(loader,) = multiprocessing.active_children()
del batches, epoch
gc.collect()
sys.exit(2)
"""


@pytest.mark.parametrize("script", [READ, LOST], ids=["a thread", "a process that nobody holds"])
def test_what_reads_ahead_ends_before_its_process(script):
    result = execute(script, check=False)
    assert result.returncode == 2, result.stderr


EPOCHS = """
from types import SimpleNamespace
task = AllInBatches(SimpleNamespace())
batches = task.get_batch_iterator(
    Sentences([5] * 30), max_sentences=4, num_workers=1, data_buffer_size=2,
    disable_iterator_cache=True,
)
print(len(list(batches.next_epoch_itr())))
# A thread waits for the processes too, and notes their end later than `join` returns.
while multiprocessing.active_children():
    pass
"""


def test_what_reads_for_one_epoch_ends_with_it():
    assert execute(EPOCHS).stdout == "8\n"


KILLED = """
batches = batch().next_epoch_itr()
next(batches)
(loader,) = multiprocessing.active_children()
for number in map(int, sys.argv[1:]):
    os.kill(loader.pid, number)
try:
    print(len(list(batches)))
except Exception as error:
    print(explain(error))
"""


@pytest.mark.parametrize(
    ("signals", "said"),
    [((signal.SIGTERM, signal.SIGINT), "98"), ((signal.SIGKILL,), LOADER_KILLED)],
    ids=["those that stop a training are not heard", "a kill is named"],
)
def test_what_loads_batches_and_signals(signals, said):
    assert execute(KILLED, *map(int, signals)).stdout == f"{said}\n"
