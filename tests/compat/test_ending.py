"""How workers end."""

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
