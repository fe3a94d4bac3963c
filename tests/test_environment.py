"""scripts/environment.sh, with a Python that installs nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ["requirements.lock", "requirements-cuda.lock"]
# Makes environments with itself in them, and notes what is asked of it and of pip.
PYTHON = """#!/bin/bash
case $* in
-c*) exit "${TOO_OLD:-0}" ;;
--version) echo Python 3.9.1 ;;
"-m venv"*)
    echo "$0 $*" >>"$CALLS"
    [[ $* != *--clear* ]] || rm -rf .venv
    mkdir -p .venv/bin && ln -sf "$(realpath "$0")" .venv/bin/python
    [ -e .venv/bin/pip ] || printf "$FIRST_LINES" "$PWD/.venv/bin/python" >.venv/bin/pip
    echo "VIRTUAL_ENV=$PWD/.venv" >.venv/bin/activate
    ;;
"-m pip install"*)
    echo "$0 $*" >>"$CALLS"
    case $* in
    *--extra-index-url* | *.lock) elsewhere=nothing ;;
    *) elsewhere=${ELSEWHERE:-nothing} ;;
    esac
    while [ $# -gt 0 ]; do
        if [ "$1" = --requirement ]; then
            grep -q -e "${REFUSED:-nothing}" -e "$elsewhere" <(cat "$2") && exit 1
        fi
        shift
    done
    ;;
esac
exit 0
"""


@pytest.fixture
def source(tmp_path):
    """source(folder, lock, **variables): what became of sourcing it there, and the calls."""
    calls, commands, project = tmp_path / "calls", tmp_path / "bin", tmp_path / "old"
    (project / "scripts").mkdir(parents=True)
    for name in ("scripts/environment.sh", "scripts/cpu.sh", "setup.py", "constraints.txt", *LOCKS):
        shutil.copy(ROOT / name, project / name)
    (project / "resmlp_mt/native").mkdir(parents=True)
    for name in ("x.c", "x.h"):
        (project / "resmlp_mt/native" / name).touch()
    commands.mkdir()
    for name in ("python3", "python3.12", "python3.11", "mine"):
        (commands / name).write_text(PYTHON)
        (commands / name).chmod(0o755)

    def run(folder="old", lock="", **variables):
        calls.write_text("")
        given = {"PATH": f"{commands}:{os.environ['PATH']}", "CALLS": str(calls)}
        result = subprocess.run(
            ["bash", "-euc", f"lock={lock}; extras=train; . scripts/environment.sh"],
            cwd=tmp_path / folder,
            env={"FIRST_LINES": "#!%s\\n"} | given | variables,
            capture_output=True,
            text=True,
        )
        return result, calls.read_text().splitlines()

    return run


@pytest.mark.parametrize("lock", LOCKS)
def test_a_locked_environment_is_made_anew_of_hashes_only(source, lock):
    done, (venv, *calls, ours) = source(lock=lock)
    assert done.returncode == 0 and venv.endswith("-m venv --clear .venv")
    assert ours.endswith("--no-deps --no-build-isolation --use-pep517 --editable .")
    assert calls and calls[-1].endswith(f"--requirement {lock}")
    assert all("--require-hashes --no-build-isolation --only-binary :all:" in c for c in calls)
    assert source(lock=lock)[1] == source()[1] == []


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("elsewhere", ["", "^torch=="])
def test_the_index_of_torch_is_asked_where_no_other_has_it(source, lock, elsewhere):
    done, calls = source(lock=lock, ELSEWHERE=elsewhere)
    asked = [call for call in calls if "download.pytorch.org/whl/cpu" in call]
    assert done.returncode == 0 and len(asked) == (bool(elsewhere) and lock == LOCKS[0])


def test_the_environment_is_remade_when_it_is_not_the_one_asked_for(source, tmp_path):
    calls = source()[1]
    assert calls[-1].endswith("--editable .[train] --constraint constraints.txt")
    assert not [call for call in calls if "--require-hashes" in call]
    assert source()[1] == []
    for lock in LOCKS:
        assert source(lock=lock)[1]
    for changed, lock in ((LOCKS[1], ""), ("constraints.txt", LOCKS[0])):
        with open(tmp_path / "old" / changed, "a") as file:
            file.write("# changed\n")
        assert source(lock=lock)[1] and source(lock=LOCKS[0])[0].returncode == 0


def test_where_there_is_a_gpu_torch_is_not_the_cpu_build(source, tmp_path):
    shutil.copy(tmp_path / "bin" / "python3", tmp_path / "bin" / "nvidia-smi")
    calls = source()[1]
    assert len(calls) == 2 and "+cpu" not in " ".join(calls)


@pytest.mark.parametrize("refused", ["^setuptools==", "^torch==", "^ve-fairseq=="])
def test_what_pip_refuses_leaves_no_environment_that_passes_for_installed(
    source, tmp_path, refused
):
    assert source(lock=LOCKS[0], REFUSED=refused)[0].returncode
    assert not (tmp_path / "old" / ".venv" / "installed").exists()
    done, calls = source(lock=LOCKS[0])
    assert done.returncode == 0 and len(calls) > 3


@pytest.mark.parametrize("lines", ["#!%s\\n", '#!/bin/sh\\n\'\'\'exec\' "%s" "$0" "$@"\\n'])
def test_an_environment_that_was_moved_or_copied_is_made_anew(source, tmp_path, lines):
    assert source(FIRST_LINES=lines)[1] and not source()[1]
    shutil.copytree(tmp_path / "old", tmp_path / "copied", symlinks=True)
    (tmp_path / "old").rename(tmp_path / "moved")
    for folder in ("copied", "moved"):
        result, (made, *_) = source(folder, FIRST_LINES=lines)
        assert result.returncode == 0 and made.endswith("-m venv --clear .venv")
        assert not source(folder)[1]
    # A link leads to the same place. What is there is not cleared for a change in setup.py.
    (tmp_path / "link").symlink_to("moved")
    assert not source("link")[1]
    (tmp_path / "moved" / "setup.py").write_text("")
    assert source("moved")[1][0] == f"{tmp_path}/bin/python3 -m venv .venv"


def test_the_python_that_is_named_is_taken_or_refused(source, tmp_path):
    for variables, said in (
        ({"PYTHON": "/no/such/python"}, "PYTHON=/no/such/python"),
        ({"PYTHON": "mine", "TOO_OLD": "1"}, "Python 3.9.1"),
        ({"TOO_OLD": "1"}, "python3-venv"),
    ):
        result, made = source(**variables)
        assert result.returncode == 2 and said in result.stderr and not made
        assert not (tmp_path / "old" / ".venv").exists()
    assert source(PYTHON="mine")[1][0].startswith(f"{tmp_path}/bin/mine ")
    shutil.rmtree(tmp_path / "old" / ".venv")
    (tmp_path / "bin" / "python3").write_text("#!/bin/bash\nexit 1")
    assert source()[1][0].startswith(f"{tmp_path}/bin/python3.12 ")


@pytest.mark.parametrize("options", [["--frozen"], ["--locked", "more"]])
def test_quickstart_names_its_options(options):
    command = ["bash", ROOT / "scripts" / "quickstart.sh", *options]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2 and "--locked=cuda" in result.stderr
