"""Two workers on CPUs, started by torchrun, against one that adds up two batches."""

import os
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import (
    IMAGE_RECIPE,
    IMAGE_SIZES,
    RECIPE,
    ROOT,
    SIZES,
    assert_refused,
    entries,
    run,
)

TORCHRUN = ["torchrun", "--standalone", "--nproc_per_node", 2, "--no-python", "resmlp-mt"]
PATH = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
# What is drawn at random depends on the worker.
TEXT = ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE, "--dropout", 0]
PICTURES = [*IMAGE_SIZES, *IMAGE_RECIPE, "--hflip", 0, "--color-jitter", 0]


def train(data, out, *flags, program=("resmlp-mt",), **options):
    where = ["--save-dir", out, "--max-update", 4, "--log-interval", 1]
    return run(*program, "train", data, *flags, *where, env=PATH, **options)


def weights(folder):
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]


@pytest.mark.parametrize("ddp", ["pytorch_ddp", "legacy_ddp"])
@pytest.mark.parametrize("kind", ["text", "images"])
def test_two_workers_train_as_one_that_adds_up_two_batches(kind, ddp, request, tmp_path):
    flags = TEXT if kind == "text" else PICTURES
    data = request.getfixturevalue("prepared" if kind == "text" else "pictures")
    together = train(data, tmp_path / "two", *flags, "--ddp-backend", ddp, program=TORCHRUN)
    alone = train(data, tmp_path / "one", *flags, "--update-freq", 2)
    by_two, by_one = (
        torch.tensor([float(entry["loss"]) for entry in entries(log.stdout + log.stderr, "ups")])
        for log in (together, alone)
    )
    assert len(by_two) == 4
    torch.testing.assert_close(by_two, by_one, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(
        weights(tmp_path / "two"), weights(tmp_path / "one"), atol=1e-4, rtol=1e-4
    )


def test_fairseqs_own_program_joins_its_workers_too(prepared, tmp_path):
    program = [*TORCHRUN[:-1], "fairseq-train"]
    where = ["--user-dir", ROOT / "resmlp_mt", "--save-dir", tmp_path, "--max-update", 2]
    output = run(*program, prepared, *TEXT, *where, env=PATH)
    assert "training on 2 devices" in output.stdout + output.stderr
    assert (tmp_path / "checkpoint_last.pt").exists()


def test_tasks_of_srun_do_not_train_apart(prepared, tmp_path):
    result = run(
        "resmlp-mt", "train", prepared, *TEXT, "--save-dir", tmp_path,
        env={"SLURM_STEP_NUM_TASKS": "4"}, check=False,
    )  # fmt: skip
    assert_refused(result, "srun started 4 tasks", "torchrun")
    assert not list(tmp_path.iterdir())
