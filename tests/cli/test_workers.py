"""Two workers on CPUs, started by torchrun, against one; and data in several folders."""

import os
import shutil
import signal
import sys
from itertools import pairwise
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
    start,
    wait_for,
)
from filelock import FileLock

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


@pytest.fixture(scope="session")
def alone(shared, prepared, pictures):
    """alone(kind): the data and flags, and the folder of a training in which one worker adds up."""
    kinds = {"text": (prepared, TEXT), "images": (pictures, PICTURES)}

    def find(kind):
        data, flags = kinds[kind]
        out = shared / f"alone-{kind}"
        with FileLock(out.with_suffix(".lock")):
            if not out.exists():
                log = train(data, out, *flags, "--update-freq", 2)
                (out / "train.log").write_text(log.stdout + log.stderr)
        return data, flags, out

    return find


@pytest.mark.parametrize(
    ("kind", "ddp"),
    [("text", "pytorch_ddp"), ("text", "legacy_ddp"), ("images", "pytorch_ddp")],
)
def test_two_workers_train_as_one_that_adds_up_two_batches(kind, ddp, alone, tmp_path):
    data, flags, one = alone(kind)
    log = train(data, tmp_path, *flags, "--ddp-backend", ddp, program=TORCHRUN)
    by_two, by_one = (
        torch.tensor([float(entry["loss"]) for entry in entries(text, "ups")])
        for text in (log.stdout + log.stderr, (one / "train.log").read_text())
    )
    assert len(by_two) == 4
    torch.testing.assert_close(by_two, by_one, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(weights(tmp_path), weights(one), atol=1e-4, rtol=1e-4)


def test_fairseqs_own_program_joins_its_workers_and_all_stop_on_sigterm(prepared, tmp_path):
    program = [*TORCHRUN[:-1], "fairseq-train", prepared, "--user-dir", ROOT / "resmlp_mt"]
    process = start(*program, *TEXT, "--save-dir", tmp_path, env=PATH)
    wait_for("training on 2 devices", process)
    wait_for('"ups"', process)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and rest.count("SIGTERM: saving and stopping") == 1
    assert "forcefully" not in rest  # torchrun kills a worker that waits for the other
    saved = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["optimizer_history"]
    (logged,) = entries(rest, "train_num_updates")
    assert saved[-1]["num_updates"] == int(logged["train_num_updates"]) > 0


def find_second_worker(torchrun) -> int:
    for child in Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children").read_text().split():
        if "LOCAL_RANK=1" in Path(f"/proc/{child}/environ").read_text().split("\0"):
            return int(child)


def test_sigterm_to_one_worker_in_a_validation_stops_all(much_to_validate, tmp_path):
    slow = ["--encoder-layers", 12, "--batch-size-valid", 1, "--max-target-positions", 60]
    where = ["--save-dir", tmp_path]
    process = start(*TORCHRUN, "train", much_to_validate, *TEXT, *slow, *where, env=PATH)
    wait_for("begin validation", process)
    os.kill(find_second_worker(process), signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and rest.count("SIGTERM: saving and stopping") == 1
    assert '"valid_loss"' not in rest and "Traceback" not in rest
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint1.pt", "checkpoint_last.pt"}


def test_sharded_data_is_a_folder_an_epoch_in_turn(prepared, tmp_path):
    small = shutil.copytree(prepared, tmp_path / "small")
    for path in small.glob("valid.*"):  # 20 pairs instead of 400
        shutil.copy(path, path.with_name(path.name.replace("valid", "train")))
    command = ["resmlp-mt", "train", f"{prepared}:{small}", *TEXT, "--arch", "resmlp"]
    log = run(*command, "--max-epoch", 4, "--save-dir", tmp_path / "model")
    ends = [
        int(entry["train_num_updates"])
        for entry in entries(log.stdout + log.stderr, "train_num_updates")
    ]
    whole, few, *again = (ends[0], *(end - start for start, end in pairwise(ends)))
    assert whole > 5 * few > 0 and again == [whole, few]


def test_tasks_of_srun_do_not_train_apart(prepared, tmp_path):
    result = run(
        "resmlp-mt", "train", prepared, *TEXT, "--save-dir", tmp_path,
        env={"SLURM_STEP_NUM_TASKS": "4"}, fork=True,
    )  # fmt: skip
    assert_refused(result, "srun started 4 tasks", "torchrun")
    assert not list(tmp_path.iterdir())
