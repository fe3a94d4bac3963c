"""How workers end, and threads of fairseq's."""

from pathlib import Path

from cli.commands import run

WORK = """
import sys
import resmlp_mt.plugin
from compat.defects import threads_after_work_together
from fairseq.distributed import utils
print(threads_after_work_together(utils.distributed_main, sys.argv[1]))
"""


def test_no_thread_of_a_group_is_left_when_its_work_is_done(tmp_path):
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    said = run("python", "-c", WORK, tmp_path, env=paths).stdout
    assert said.startswith("{") and "gloo" not in said


READ = """
import sys
import resmlp_mt.plugin
from compat.defects import the_thread_that_reads_ahead_aborts_the_end
the_thread_that_reads_ahead_aborts_the_end(None)
sys.exit(2)
"""


def test_the_thread_that_reads_ahead_ends_before_its_process():
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    result = run("python", "-c", READ, env=paths, check=False)
    assert result.returncode == 2, result.stderr
