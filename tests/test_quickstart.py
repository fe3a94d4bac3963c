"""The quick start as a user runs it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]


def test_quickstart_reaches_90_bleu_and_reuses_what_is_there(tmp_path):
    project = tmp_path / "project"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, tracked):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    # The environment of the tests stands for the installation, which made it.
    (project / ".venv").symlink_to(Path(sys.prefix))
    environment = os.environ | {"PYTHONPATH": str(project)}
    results = []
    for _ in range(2):
        command = ["bash", "scripts/quickstart.sh"]
        result = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr[-4000:]
        made = (project / "quickstart").rglob("*")
        # Drawn anew each time.
        times = {p: p.stat().st_mtime_ns for p in made if p.is_file() and p.name != "loss.png"}
        results.append((result.stdout, times))
    (first, made), (again, left) = results
    score = float(re.search(r"BLEU = ([\d.]+)", first)[1])
    assert score >= 90
    assert first.count("translation  ") == 10 and first.count("reference  ") == 10
    assert Image.open(project / "quickstart" / "loss.png").size[0] > 600
    assert first.endswith(again) and again.startswith("      source")
    assert left == made and len(made) > 10
    assert "--distributed-world-size 1 " in (project / "scripts/quickstart.sh").read_text()


# Notes how it is called, and makes environments with nothing in them.
PYTHON = """#!/bin/bash
echo "$0 $*" >>"$CALLS"
case $* in
-c*) exit "${TOO_OLD:-0}" ;;
--version) echo Python 3.9.1 ;;
"-m venv"*)
    [[ $* != *--clear* ]] || rm -rf .venv
    mkdir -p .venv/bin && ln -sf "$(realpath "$0")" .venv/bin/python
    [ -e .venv/bin/pip ] || printf "$FIRST_LINES" "$PWD/.venv/bin/python" >.venv/bin/pip
    echo "VIRTUAL_ENV=$PWD/.venv" >.venv/bin/activate
    ;;
esac
"""


@pytest.fixture
def source(tmp_path):
    """source(folder, **variables) sources environment.sh there; the environments that it made."""
    calls, commands, project = tmp_path / "calls", tmp_path / "bin", tmp_path / "old"
    for name in ("scripts/environment.sh", "scripts/cpu.sh", "setup.py", "constraints.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    (project / "resmlp_mt/native").mkdir(parents=True)
    for name in ("x.c", "x.h"):
        (project / "resmlp_mt/native" / name).touch()
    commands.mkdir()
    for name in ("python3", "python3.12", "python3.11", "mine"):
        (commands / name).write_text(PYTHON)
        (commands / name).chmod(0o755)

    def run(folder, extras="train", **variables):
        calls.write_text("")
        given = {"PATH": f"{commands}:{os.environ['PATH']}", "CALLS": str(calls)}
        result = subprocess.run(
            ["bash", "-euc", f"lock=; extras={extras}; . scripts/environment.sh"],
            cwd=tmp_path / folder,
            env={"FIRST_LINES": "#!%s\\n"} | given | variables,
            capture_output=True,
            text=True,
        )
        return result, [call for call in calls.read_text().splitlines() if "-m venv" in call]

    return run


@pytest.mark.parametrize("lines", ["#!%s\\n", '#!/bin/sh\\n\'\'\'exec\' "%s" "$0" "$@"\\n'])
def test_an_environment_that_was_moved_or_copied_is_made_anew(source, tmp_path, lines):
    result, made = source("old", FIRST_LINES=lines)
    assert result.returncode == 0 and len(made) == 1, result.stderr
    assert not source("old")[1]
    shutil.copytree(tmp_path / "old", tmp_path / "copied", symlinks=True)
    (tmp_path / "old").rename(tmp_path / "moved")
    for folder in ("copied", "moved"):
        result, (made,) = source(folder, FIRST_LINES=lines)
        assert result.returncode == 0 and made.endswith("-m venv --clear .venv")
        assert not source(folder)[1]
    # A link leads to the same place. What is there is not cleared for a change in setup.py.
    (tmp_path / "link").symlink_to("moved")
    assert not source("link")[1]
    (tmp_path / "moved" / "setup.py").write_text("")
    assert source("moved")[1] == [f"{tmp_path}/bin/python3 -m venv .venv"]


def test_the_python_that_is_named_is_taken_or_refused(source, tmp_path):
    for variables, said in (
        ({"PYTHON": "/no/such/python"}, "PYTHON=/no/such/python"),
        ({"PYTHON": "mine", "TOO_OLD": "1"}, "Python 3.9.1"),
        ({"TOO_OLD": "1"}, "python3-venv"),
    ):
        result, made = source("old", **variables)
        assert result.returncode == 2 and said in result.stderr and not made
        assert not (tmp_path / "old" / ".venv").exists()
    assert source("old", PYTHON="mine")[1][0].startswith(f"{tmp_path}/bin/mine ")
    shutil.rmtree(tmp_path / "old" / ".venv")
    (tmp_path / "bin" / "python3").write_text("#!/bin/bash\nexit 1")
    assert source("old")[1][0].startswith(f"{tmp_path}/bin/python3.12 ")
