"""help, doctor, and the scripts beside them."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import setuptools
import torch
from cli.commands import ROOT, assert_refused, refuse, run

from resmlp_mt.cli.parser import build_parser
from resmlp_mt.engines.kernels import library as kernels


def test_unknown_commands_and_flags_are_refused():
    assert_refused(run("resmlp-mt", check=False), "usage: resmlp-mt", "translate", "train")
    for command in ("transmogrify", "--loud doctor", "doctor --loud", "translate --beam", "study"):
        said = refuse(*command.split())
        assert command.split()[0] in said or "--loud" in said
        assert said.count("\n") == 1


def test_doctor_finds_nothing_here(monkeypatch):
    output = run("resmlp-mt", "doctor").stdout
    for name in ("torch", "ve-fairseq", "Python", "apex", "no problem found", "CPU threads"):
        assert name in output
    for name, value in {
        "bf16 on CPUs": "fast|slow here",
        "compiled search": "avx|i8mm|dotprod|plain",
    }.items():
        assert re.search(f"^{name} +({value})", output, re.M)
    # No more and no less than setup.py asks for.
    asked = {}
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: asked.update(arguments))
    runpy.run_path(str(ROOT / "setup.py"))
    extras = {extra: names for extra, names in asked["extras_require"].items() if extra != "dev"}
    packages = {
        re.match(r"[\w-]+", name)[0] for name in sum(extras.values(), asked["install_requires"])
    }
    assert packages <= set(re.findall(r"^(\S+) ", output, re.M))


@pytest.mark.parametrize(
    ("setting", "file", "said"),
    [
        ("none", None, "compiled search   off, by RESMLP_CPU_ISA"),
        ("", None, "compiled search   not built: install a wheel"),
        ("", "kernels.abi3.so", "PROBLEM: the compiled code is broken"),
        ("nonsense", None, "PROBLEM: RESMLP_CPU_ISA=nonsense?"),
    ],
)
def test_doctor_says_what_became_of_the_compiled_search(
    setting, file, said, monkeypatch, tmp_path, capsys
):
    if file:
        (tmp_path / file).write_text("no library")
    monkeypatch.setattr(kernels, "_FOLDER", tmp_path)
    monkeypatch.setattr(kernels, "find_library", kernels.find_library.__wrapped__)
    monkeypatch.setenv("RESMLP_CPU_ISA", setting)
    arguments = build_parser().parse_args(["doctor"])
    assert arguments.run(arguments) == said.startswith("PROBLEM")
    assert said in capsys.readouterr().out


def installed_without(*left_out, folder):
    """A Python that finds all packages of this one but some; returns what starts it."""
    folder.mkdir()
    for path in Path(torch.__file__).parents[1].iterdir():
        if not path.name.startswith(left_out) and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)

    def start(*command):
        # -S: without the packages of its own.
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"}
        words = [sys.executable, "-S", "-m", "resmlp_mt.cli", *command]
        return subprocess.run(words, capture_output=True, text=True, env=environment)

    return start


def test_doctor_says_what_is_missing_or_broken(tmp_path):
    for missing, left_out in {
        "ve-fairseq": ("fairseq", "ve_fairseq", "py3langid"),
        "torch": ("torch", "timm"),
    }.items():
        start = installed_without(*left_out, folder=tmp_path / missing)
        done = start("doctor")
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        command = f"cd {ROOT} && pip install -e '.[train]' -c constraints.txt"
        assert f"PROBLEM: {missing} is missing: {command}\n" in done.stdout
        if missing == "torch":
            assert "fairseq cannot be imported" in done.stdout
        else:
            assert "CPU threads" in done.stdout
            assert "PROBLEM: py3langid is missing: pip install py3langid\n" in done.stdout
            assert f"extra [train]     if you want it: {command}\n" in done.stdout
            checkpoint = ROOT / "resmlp_mt/pretrained/multi30k-en-de/model.pt"
            done = start("translate", "--model", checkpoint)
            assert_refused(done, "fairseq is not installed", "[train]")
    (tmp_path / "torch" / "torch").mkdir()
    (tmp_path / "torch" / "torch" / "__init__.py").write_text("raise OSError('libcudart.so')")
    done = start("doctor")
    assert done.returncode == 1
    assert "torch cannot be imported, which everything needs: OSError: libcudart" in done.stdout


def test_generate_output_is_read_in_order(tmp_path):
    lines = ["2026 | INFO | loading", "S-1\tb", "T-1\tB", "H-1\t-0.1\tx", "D-1\t-0.1\tzwei"]
    lines += ["P-1\t-0.1", "S-0\ta", "T-0\tA", "D-0\t-0.2\teins", "Generate test: BLEU = 1"]
    (tmp_path / "out.txt").write_text("\n".join(lines) + "\n")
    command = [sys.executable, ROOT / "scripts/read_generate.py", tmp_path / "out.txt"]
    command += ["--hypotheses", tmp_path / "hyp", "--references", tmp_path / "ref"]
    command += ["--examples", "1"]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    assert (tmp_path / "hyp").read_text() == "eins\nzwei\n"
    assert (tmp_path / "ref").read_text() == "A\nB\n"
    assert "eins" in result.stdout and "zwei" not in result.stdout
