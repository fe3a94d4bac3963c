"""scripts/stress_tests.py beside a load that only waits."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """
from pathlib import Path

def test_always():
    pass

def test_once():
    Path("runs").open("a").write("x")
    assert Path("runs").read_text() == "x"
"""


def test_the_report_says_which_test_failed_in_which_run(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "scripts" / "stress_tests.py"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "stress-ng").write_text("#!/bin/sh\necho $* >>load\nexec sleep 1800\n")
    (tmp_path / "bin" / "stress-ng").chmod(0o755)
    (tmp_path / "test_some.py").write_text(TESTS)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}", prepend=":")
    monkeypatch.chdir(tmp_path)
    flags = ["2", "--load", "--cpu 1", "--workers", "0", "--report", "report.md"]
    monkeypatch.setattr(sys, "argv", ["stress_tests.py", *flags, "test_some.py"])
    assert script["main"]() == 1
    assert (tmp_path / "load").read_text().count("--cpu 1 ") == 2
    report = (tmp_path / "report.md").read_text()
    assert "1 of 2 runs without a failure" in report and "2 tests a run" in report
    assert report.endswith("- `test_some::test_once` failed 1 times: in run 2\n")
