"""The lock files, and the bill of materials."""

import json
import re
import runpy
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
