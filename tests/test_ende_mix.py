"""examples/ende-mix: what is held out stays out, and one command trains, scores and records."""

import csv
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import assert_refused, run

from examples.lesson import write_lesson

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ende-mix"


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The environment of a shell in which `resmlp-mt` is this checkout's."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "resmlp-mt").write_text(f'#!/bin/sh\nexec {sys.executable} -m resmlp_mt.cli "$@"\n')
    (folder / "resmlp-mt").chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    """The mix in little, 600 pairs of which every second is Tatoeba's; and the news."""
    folder = tmp_path_factory.mktemp("mix")
    write_lesson(folder, train=600, valid=20, test=10)
    for lang in ("en", "de"):
        text = (folder / f"train.{lang}").read_text("utf-8")
        with lzma.open(folder / f"train.{lang}.xz", "wt", encoding="utf-8") as stream:
            stream.write(text)
    with lzma.open(folder / "train.domain.xz", "wt") as stream:
        stream.write("tatoeba-ende\nbible\n" * 300)
    return folder


def prepare(mix, out, *flags, **options):
    command = ["python", EXAMPLE / "prepare.py", "--raw", mix, "--news", mix / "test"]
    command += ["--out", out, "--vocab-size", 400, "--held-out", 15, *flags]
    return run(*command, **options)


def test_the_sets_are_apart_spread_evenly_and_as_many_as_asked_for():
    sys.path.insert(0, str(EXAMPLE))
    from prepare import split

    sys.path.remove(str(EXAMPLE))
    rows = [(f"s{i % 190}", f"t{i}", ("tatoeba", "other")[i % 2]) for i in range(200)]
    sets = split(rows, 10, 40)
    assert [len(part) for part in sets.values()] == [40, 10, 10]
    assert [int(row[1][1:]) for row in sets["valid"]] == list(range(0, 200, 20))
    assert {row[2] for row in sets["tatoeba"]} == {"tatoeba"}
    for side in (0, 1):
        texts = [{row[side] for row in part} for part in sets.values()]
        assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    everything = split(rows, 10, None)["train"]
    assert set(sets["train"]) < set(everything)
    held_out = sets["valid"] + sets["tatoeba"]
    sources, targets = ({row[side] for row in held_out} for side in (0, 1))
    lost = {row for row in rows if row not in everything}
    assert all(row[0] in sources or row[1] in targets for row in lost)


def test_one_command_trains_scores_and_records_and_does_nothing_twice(mix, tmp_path, commands):
    prepare(mix, tmp_path / "bin", env=commands)
    variables = commands | {"DATA": str(tmp_path / "bin"), "OUT": str(tmp_path / "out")}
    variables |= {"RESULTS": str(tmp_path / "results.csv"), "UPDATES": "4", "TOKENS": "1000"}
    variables["FAMILIES"] = "resmlp_plus"
    for _ in range(2):
        result = subprocess.run(
            ["bash", EXAMPLE / "compare.sh", "tiny", "7"],
            capture_output=True,
            text=True,
            env=os.environ | variables,
        )
        assert result.returncode == 0, result.stdout[-1000:] + result.stderr[-3000:]
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["model"], row["set"], row["seed"]) for row in rows] == [
        ("resmlp_plus_tiny", "newstest2014", "7"),
        ("resmlp_plus_tiny", "tatoeba", "7"),
    ]
    assert rows[0]["command"] == (
        "TOKENS=1000 examples/ende-mix/train.sh resmlp_plus tiny 7 4 --bf16"
    )
    with open(EXAMPLE / "results.csv", encoding="utf-8") as stream:
        assert stream.readline().strip() == ",".join(rows[0])


@pytest.mark.parametrize("arguments", [["resmlp", "huge"], ["lstm", "tiny"], ["resmlp"]])
def test_unknown_families_and_sizes_are_refused(arguments, tmp_path):
    result = subprocess.run(
        ["bash", EXAMPLE / "train.sh", *arguments],
        capture_output=True, text=True, env=os.environ | {"OUT": str(tmp_path)},
    )  # fmt: skip
    assert result.returncode != 0 and "usage: train.sh" in result.stderr


def test_files_that_do_not_belong_together_are_refused(mix, tmp_path):
    def refuse(folder, *flags, said):
        assert_refused(prepare(folder, tmp_path / "bin", *flags, check=False), said)

    copy = shutil.copytree(mix, tmp_path / "mix")
    with lzma.open(copy / "train.domain.xz", "at") as stream:
        stream.write("one too many\n")
    refuse(copy, said="differ in length")
    packed = (copy / "train.de.xz").read_bytes()
    (copy / "train.de.xz").write_bytes(packed[: len(packed) // 2])
    refuse(copy, said="train.de.xz: broken archive")
    (copy / "train.de.xz").unlink()
    refuse(copy, said="train.de.xz")
    refuse(mix, "--pairs", "0", said="--pairs must be at least 1")
    refuse(mix, "--news", "nix", said="nix.en: no such file")
    assert not (tmp_path / "bin").exists()
