"""Trainings that are killed, stopped, or out of room, and what is left of them."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from cli.commands import RECIPE, ROOT, SIZES, assert_refused, run

KILLS = int(os.environ.get("RESMLP_KILLS", 4))
UPDATES = 150
TRAIN = [*["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE], "--max-update", UPDATES]
TRAIN += ["--max-tokens", 300, "--disable-validation", "--save-interval-updates", 3]
TRAIN += ["--keep-interval-updates", 2, "--keep-last-epochs", 1, "--log-interval", 1]


def start(data, out, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "resmlp_mt.cli", "train", data, *TRAIN, "--save-dir", out]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONUNBUFFERED": "1"}  # its log tells how far it is
    return subprocess.Popen(
        list(map(str, command)),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def wait_for_an_update(process) -> list[str]:
    seen = []
    for line in process.stdout:
        seen.append(line)
        if '"ups"' in line:
            break
    return seen


def state(folder, name="checkpoint_last.pt"):
    return torch.load(folder / name, weights_only=True)


def count_updates(checkpoint) -> int:
    return checkpoint["optimizer_history"][-1]["num_updates"]


@pytest.fixture(scope="module")
def uninterrupted(prepared, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted")
    run("resmlp-mt", "train", prepared, *TRAIN, "--save-dir", out)
    return out


def test_killed_trainings_end_with_the_weights_of_one_that_was_not(
    prepared, uninterrupted, tmp_path
):
    chance = random.Random(7)
    for _ in range(KILLS):
        process = start(prepared, tmp_path)
        wait_for_an_update(process)
        time.sleep(chance.uniform(0, 0.8))  # within an update, or while a checkpoint is written
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL  # it had not ended
        for path in tmp_path.glob("*.pt"):
            count_updates(state(tmp_path, path.name))  # all are whole
    run("resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path)
    found, expected = state(tmp_path), state(uninterrupted)
    assert count_updates(found) == count_updates(expected) == UPDATES
    for name, weight in expected["model"].items():
        assert torch.equal(found["model"][name], weight), name


def test_sigterm_ends_a_training_with_a_checkpoint(prepared, uninterrupted, tmp_path):
    process = start(prepared, tmp_path)
    wait_for_an_update(process)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and "SIGTERM: saving and stopping" in rest
    assert "Traceback" not in rest
    done = count_updates(state(tmp_path))
    assert 0 < done < UPDATES
    run("resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path)
    found, expected = state(tmp_path)["model"], state(uninterrupted)["model"]
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_a_full_disk_leaves_the_checkpoint_before(prepared, uninterrupted, tmp_path):
    first = ["--max-update", 2, "--save-dir", tmp_path]
    run("resmlp-mt", "train", prepared, *TRAIN, *first)
    size = (tmp_path / "checkpoint_last.pt").stat().st_size

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    result = run(
        "resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path, check=False,
        preexec_fn=limit,
    )  # fmt: skip
    assert_refused(result, "it was not written", "Make room", ".pt: File too large")
    assert count_updates(state(tmp_path)) == 2
    assert not list(tmp_path.glob("*.tmp"))
