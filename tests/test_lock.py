"""The lock files, and the environment that scripts/environment.sh makes of them."""

import json
import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest
import setuptools
from packaging.requirements import Requirement

from resmlp_mt import __version__

ROOT = Path(__file__).parents[1]
LOCK = runpy.run_path(str(ROOT / "scripts" / "lock.py"))
LOCKS = ["requirements.lock", "requirements-cuda.lock"]


def pins(name):
    return LOCK["read_pins"]((ROOT / name).read_text("utf-8"))


def versions(name):
    return {package: version for package, (version, _) in pins(name).items()}


@pytest.mark.parametrize("name", LOCKS)
def test_every_file_of_a_lock_has_its_hash(name):
    for package, (_, hashes) in pins(name).items():
        assert hashes and len(hashes) == len(set(hashes)), package
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", value) for value in hashes), package


def test_locks_are_those_of_the_constraints():
    tested, locked, cuda = map(versions, ("constraints.txt", *LOCKS))
    assert locked == tested | {"torch": f"{tested['torch']}+cpu"}
    assert {package: cuda[package] for package in tested} == tested
    added = cuda.keys() - tested
    assert "triton" in added and all(map(LOCK["CUDA"].fullmatch, added))
    hashes = [{n: h for n, (_, h) in pins(name).items() if n != "torch"} for name in LOCKS]
    assert hashes[1] | hashes[0] == hashes[1]
    assert not set(pins(LOCKS[0])["torch"][1]) & set(pins(LOCKS[1])["torch"][1])


def test_the_bill_of_materials_is_that_of_the_lock():
    bill = json.loads((ROOT / "sbom.cdx.json").read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    said = bill["metadata"]["component"]
    assert (said["name"], said["version"]) == ("resmlp_mt", __version__)
    listed = {}
    for component in bill["components"]:
        (files,) = component["externalReferences"]
        hashes = [f"sha256:{file['content']}" for file in files["hashes"]]
        listed[component["name"].lower()] = component["version"], sorted(hashes)
    locked = pins(LOCKS[0]).items()
    assert listed == {name: (version, sorted(hashes)) for name, (version, hashes) in locked}


def test_locks_satisfy_what_setup_asks_for(monkeypatch):
    asked = {}
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: asked.update(arguments))
    runpy.run_path(str(ROOT / "setup.py"))
    extras = asked["extras_require"].values()
    required = [Requirement(text) for text in sum(extras, asked["install_requires"])]
    assert len(required) > 20
    for locked in map(versions, LOCKS):
        for requirement in required:
            version = locked[LOCK["normalize"](requirement.name)]
            assert requirement.specifier.contains(version), requirement


def test_hashes_of_the_cpu_build_are_found_in_its_index():
    row = '<a href="/whl/cpu/torch-{}.whl#sha256={}" data-core-metadata="sha256=00">torch</a><br/>'
    files = {
        "2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64": "b",
        "2.13.0%2Bcpu-cp312-cp312-manylinux_2_28_x86_64": "a",
        "2.13.0%2Bcpu-cp312-cp312-manylinux_2_28_aarch64": "1",
        "2.13.0%2Bcpu-cp312-cp312-win_amd64": "2",
        "2.13.0-cp312-none-macosx_11_0_arm64": "3",
        "2.12.0%2Bcpu-cp312-cp312-manylinux_2_28_x86_64": "4",
    }
    page = "\n".join(row.format(name, 64 * digit) for name, digit in files.items())
    assert LOCK["cpu_hashes"](page, "2.13.0") == [f"sha256:{64 * digit}" for digit in "ab"]


# Stands for Python: makes an environment that holds only itself, and writes down what pip is asked.
PYTHON = """#!/bin/bash
case "$*" in
    "-m venv "*)
        echo "$*" >>calls
        for folder; do :; done
        mkdir -p "$folder/bin"
        cp "$0" "$folder/bin/python"
        touch "$folder/bin/activate"
        echo "#!$PWD/$folder/bin/python" >"$folder/bin/pip"
        ;;
    "-m pip install "*)
        echo "$*" >>calls
        case "$*" in
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
def install(tmp_path):
    """install(lock, **variables): whether it went well, and what pip was asked to install."""
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    for name in ("setup.py", "constraints.txt", *LOCKS):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")

    def run(lock, **variables):
        (tmp_path / "calls").unlink(missing_ok=True)
        script = f"set -euo pipefail; lock={lock}; extras=train; . scripts/environment.sh"
        environment = os.environ | {"PYTHON": str(tmp_path / "python")} | variables
        result = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        calls = tmp_path / "calls"
        return result.returncode == 0, calls.read_text().splitlines() if calls.exists() else []

    run.folder = tmp_path
    return run


@pytest.mark.parametrize("lock", LOCKS)
def test_a_locked_environment_is_made_anew_of_hashes_only(install, lock):
    done, (venv, *calls, ours) = install(lock)
    assert done and venv == "-m venv --clear .venv"
    assert ours.endswith("--no-deps --no-build-isolation --use-pep517 --editable .")
    assert calls and calls[-1].endswith(f"--requirement {lock}")
    assert all("--require-hashes --no-build-isolation --only-binary :all:" in c for c in calls)
    assert install(lock) == install("") == (True, [])


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("elsewhere", ["", "^torch=="])
def test_the_index_of_torch_is_asked_where_no_other_has_it(install, lock, elsewhere):
    done, calls = install(lock, ELSEWHERE=elsewhere)
    asked = [call for call in calls if "download.pytorch.org/whl/cpu" in call]
    assert done and len(asked) == (bool(elsewhere) and lock == LOCKS[0])


def test_the_environment_is_remade_when_it_is_not_the_one_asked_for(install):
    done, calls = install("")
    assert done and calls[-1].endswith("--editable .[train] --constraint constraints.txt")
    assert not [call for call in calls if "--require-hashes" in call]
    assert install("") == (True, [])
    for lock in LOCKS:
        assert install(lock)[1]
    with open(install.folder / LOCKS[1], "a") as file:
        file.write("# changed\n")
    assert install("")[1]
    assert install(LOCKS[0])[1]
    with open(install.folder / "constraints.txt", "a") as file:
        file.write("# changed\n")
    assert install(LOCKS[0])[1]


def test_where_there_is_a_gpu_torch_is_not_the_cpu_build(install, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    calls = install("", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")[1]
    assert len(calls) == 2 and "+cpu" not in " ".join(calls)


@pytest.mark.parametrize("refused", ["^setuptools==", "^torch==", "^ve-fairseq=="])
def test_what_pip_refuses_leaves_no_environment_that_passes_for_installed(install, refused):
    assert not install(LOCKS[0], REFUSED=refused)[0]
    assert not (install.folder / ".venv" / "installed").exists()
    done, calls = install(LOCKS[0])
    assert done and len(calls) > 3


@pytest.mark.parametrize("options", [["--frozen"], ["--locked", "more"]])
def test_quickstart_names_its_options(options):
    command = ["bash", ROOT / "scripts" / "quickstart.sh", *options]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2 and "--locked=cuda" in result.stderr
