"""How workers meet and end, and what reads batches ahead."""

import signal
from functools import partial
from pathlib import Path

from cli.commands import run
from compat.defects import find_meeting, take_the_port_that_is_drawn

from resmlp_mt.compat.messages import LOADER_KILLED
from resmlp_mt.compat.patching import find_original
from resmlp_mt.compat.workers import infer_on_one_node

WORK = """
import sys
import resmlp_mt.plugin
from compat.defects import threads_after_work_together
from fairseq.distributed import utils
print(threads_after_work_together(utils.distributed_main, sys.argv[1]))
"""


def execute(script, *arguments, **options):
    """Run a script, which may import what the tests have, in a process of its own."""
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return run("python", "-c", script, *arguments, env=paths, **options)


def test_no_thread_of_a_group_is_left_when_its_work_is_done(tmp_path):
    said = execute(WORK, tmp_path).stdout
    assert said.startswith("{") and "gloo" not in said


def test_workers_that_fairseq_starts_meet_at_a_free_port():
    original = find_original("fairseq.distributed.utils:_infer_single_node_init")
    with take_the_port_that_is_drawn() as taken:
        port = find_meeting(partial(infer_on_one_node, original))
    assert 0 < port != taken


def test_all_tasks_of_a_job_meet_at_one_port(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    original = find_original("fairseq.distributed.utils:_infer_single_node_init")
    ports = {find_meeting(partial(infer_on_one_node, original)) for _ in range(2)}
    assert len(ports) == 1


READ = """
import sys
import resmlp_mt.plugin
from compat.defects import the_thread_that_reads_ahead_aborts_the_end
the_thread_that_reads_ahead_aborts_the_end(None)
sys.exit(2)
"""


def test_the_thread_that_reads_ahead_ends_before_its_process():
    result = execute(READ, check=False)
    assert result.returncode == 2, result.stderr


EPOCHS = """
import resmlp_mt.plugin
from compat.defects import processes_left_by_an_epoch
from fairseq.tasks import FairseqTask
from resmlp_mt.tasks.batches import AllInBatches
print([processes_left_by_an_epoch(kind, seconds=100) for kind in (FairseqTask, AllInBatches)])
"""


def test_what_reads_for_one_epoch_ends_with_it():
    assert execute(EPOCHS).stdout == "[0, 0]\n"


LOST = """
import gc, multiprocessing, sys
import resmlp_mt.plugin
from compat.defects import Shuffled
from fairseq.data.iterators import EpochBatchIterator
batches = EpochBatchIterator(
    Shuffled(8), list, [[0, 1], [2, 3]], num_workers=1, buffer_size=2, persistent_workers=True
)
list(batches.next_epoch_itr())
(loader,) = multiprocessing.active_children()
loader.terminate = lambda: None  # as if it did not hear
del batches
gc.collect()
print(loader.is_alive())
sys.exit(3)
"""


def test_a_process_that_nobody_holds_any_more_does_not_hold_up_the_end():
    result = execute(LOST, check=False)
    assert result.returncode == 3 and result.stdout == "True\n", result.stderr


LOADER = """
import multiprocessing, os, sys
import resmlp_mt.plugin
from compat.defects import Shuffled
from fairseq.data.iterators import EpochBatchIterator
from resmlp_mt.compat.messages import explain
batches = EpochBatchIterator(
    Shuffled(99), list, [[i] for i in range(99)], num_workers=1, buffer_size=2
).next_epoch_itr()
next(batches)
(loader,) = multiprocessing.active_children()
for number in map(int, sys.argv[1:]):
    os.kill(loader.pid, number)
try:
    print(len(list(batches)))
except Exception as error:
    print(explain(error))
"""


def test_what_loads_batches_hears_no_signal_that_stops_a_training():
    sent = [int(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert execute(LOADER, *sent).stdout == "98\n"


def test_who_trains_is_told_that_what_loads_batches_was_killed():
    said = execute(LOADER, int(signal.SIGKILL)).stdout
    assert said == f"{LOADER_KILLED}\n"
