"""scripts/compare_wheel.py on made-up packages."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "compare_wheel.py"
UPSTREAM = {
    "fairseq/same.py": "a = 1\n",
    "fairseq/changed.py": "a = 1\nb = 2\n",
    "fairseq/left_out.py": "",
    "examples/linked.py": "a = 1\n",
    "setup.py": "",
}
WHEEL = {
    "fairseq/same.py": "a = 1\r\n",
    "fairseq/changed.py": "a = 1\nb = 3\n",
    "fairseq/examples/linked.py": "a = 1\n",
    "fairseq/new.py": "",
    "fairseq/fast.cpython-311-x86_64-linux-gnu.so": "",
    "fairseq-1.dist-info/RECORD": "",
}


def compare(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def wheel(tmp_path):
    with zipfile.ZipFile(tmp_path / "fairseq-1.whl", "w") as archive:
        for name, text in WHEEL.items():
            archive.writestr(name, text)
    return tmp_path / "fairseq-1.whl"


def test_what_is_not_upstreams_is_listed(tmp_path, wheel):
    upstream = write(tmp_path / "checkout", UPSTREAM)
    with tarfile.open(tmp_path / "fairseq-1.tar.gz", "w:gz") as archive:
        archive.add(upstream, "fairseq-1")
    for form in (upstream, tmp_path / "fairseq-1.tar.gz"):
        result = compare(wheel, form)
        assert result.returncode == 1, result.stderr
        assert [line.split() for line in result.stdout.splitlines()] == [
            ["changed", "fairseq/changed.py"],
            ["compiled", "fairseq/fast.cpython-311-x86_64-linux-gnu.so"],
            ["new", "fairseq/new.py"],
            "2 of 5 files are upstream's".split(),
        ]
    assert "\n-b = 2\n+b = 3\n" in compare(wheel, upstream, "--diff").stdout
    # A file is known if any of the others has it.
    other = write(tmp_path / "other", {k: v for k, v in WHEEL.items() if k not in UPSTREAM})
    third = write(tmp_path / "third", {"fairseq/changed.py": "a = 1\nb = 3\n"})
    result = compare(wheel, upstream, other, third)
    assert result.returncode == 0 and result.stdout == "5 of 5 files are upstream's\n"
    (tmp_path / "broken.tar.gz").write_text("no archive")
    for name in ("broken.tar.gz", "missing.whl"):
        result = compare(wheel, tmp_path / name)
        assert result.returncode == 2 and name in result.stderr
