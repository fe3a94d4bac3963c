"""Trainings that are killed, stopped, or out of room, and what is left of them."""

import os
import random
import signal
from pathlib import Path

import pytest
import torch
from cli.commands import (
    RECIPE,
    SIZES,
    assert_refused,
    fill_disk,
    load,
    once,
    run,
    start,
    wait_for,
)

KILLS = int(os.environ.get("RESMLP_KILLS", 2))
UPDATES = 40 * KILLS
MODEL = ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE]
TRAIN = [*MODEL, "--max-update", UPDATES, "--subword-sampling", 0.2]  # anew in every epoch
TRAIN += ["--max-tokens", 300, "--disable-validation", "--save-interval-updates", 3]
TRAIN += ["--keep-interval-updates", 2, "--keep-last-epochs", 1, "--log-interval", 1]


def begin(data, out, **options):
    return start("resmlp-mt", "train", data, *TRAIN, "--save-dir", out, **options)


def count_updates(checkpoint) -> int:
    return checkpoint["optimizer_history"][-1]["num_updates"]


@pytest.fixture(scope="session")
def uninterrupted(shared, prepared) -> Path:
    command = ["resmlp-mt", "train", prepared, *TRAIN, "--save-dir"]
    return once(shared / "uninterrupted", lambda out: run(*command, out))


def test_killed_trainings_end_with_the_weights_of_one_that_was_not(
    prepared, uninterrupted, tmp_path
):
    chance = random.Random(7)
    for _ in range(KILLS):
        process = begin(prepared, tmp_path)
        for _ in range(chance.randrange(1, 12)):  # of 40 and more, one of three writes a checkpoint
            wait_for('"ups"', process)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL  # it had not ended
        for path in tmp_path.glob("*.pt"):
            count_updates(load(path))  # all are whole
    run("resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path)
    found, expected = load(tmp_path), load(uninterrupted)
    assert count_updates(found) == count_updates(expected) == UPDATES
    for name, weight in expected["model"].items():
        assert torch.equal(found["model"][name], weight), name


def test_stopped_in_a_later_epoch_a_training_goes_on_with_the_batches_of_the_first(
    prepared, uninterrupted, tmp_path
):
    for flags in (["--max-update", 70], []):
        run("resmlp-mt", "train", prepared, *TRAIN, *flags, "--save-dir", tmp_path)
        if flags:
            assert load(tmp_path)["extra_state"]["train_iterator"]["epoch"] == 2
    found, expected = load(tmp_path)["model"], load(uninterrupted)["model"]
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize("updates", [10, 25])  # within an epoch of 25, and at its end
def test_a_training_that_is_done_makes_no_update_more(prepared, tmp_path, updates):
    def train(folder, max_update, words=TRAIN):
        more = ["--update-freq", 2, "--max-update", max_update, "--save-dir", tmp_path / folder]
        run("resmlp-mt", "train", prepared, *words, *more)
        return load(tmp_path / folder)

    once = train("again", updates)
    assert not (tmp_path / "again" / "checkpoint_best.pt").exists()
    # A validation that is still to be made is made.
    again = train("again", updates, [word for word in TRAIN if word != "--disable-validation"])
    assert count_updates(load(tmp_path / "again" / "checkpoint_best.pt")) == updates
    assert count_updates(once) == count_updates(again) == updates
    places = [checkpoint["extra_state"]["train_iterator"] for checkpoint in (once, again)]
    assert places[0] == places[1] and places[0]["epoch"] == (1 if updates == 10 else 2)
    found, expected = (train(name, updates + 3)["model"] for name in ("again", "whole"))
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_sigterm_ends_a_training_with_a_checkpoint(prepared, uninterrupted, tmp_path):
    process = begin(prepared, tmp_path)
    wait_for('"ups"', process)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=1800)
    assert process.returncode == 0 and "SIGTERM: saving and stopping" in rest
    assert "Traceback" not in rest
    done = count_updates(load(tmp_path))
    assert 0 < done < UPDATES
    run("resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path)
    found, expected = load(tmp_path)["model"], load(uninterrupted)["model"]
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_sigterm_breaks_off_a_validation(much_to_validate, tmp_path):
    slow = ["--encoder-layers", 12, "--batch-size-valid", 1, "--max-target-positions", 60]
    command = ["resmlp-mt", "train", much_to_validate, *MODEL, *slow, "--save-dir", tmp_path]
    process = start(*command)
    wait_for("begin validation", process)
    second = run(*command, check=False)  # one folder is for one training
    assert_refused(second, f"--save-dir {tmp_path}: another training is at work there")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=1800)
    assert process.returncode == 0 and "SIGTERM: saving and stopping" in rest
    assert '"valid_loss"' not in rest and "Traceback" not in rest
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint1.pt", "checkpoint_last.pt"}
    found = load(tmp_path)
    assert found["extra_state"]["val_loss"] is None and "best" not in found["extra_state"]
    assert count_updates(found) > 0 and found["extra_state"]["train_iterator"]["epoch"] == 2


def test_a_full_disk_leaves_the_checkpoint_before(prepared, uninterrupted, tmp_path):
    first = ["--max-update", 2, "--save-dir", tmp_path]
    run("resmlp-mt", "train", prepared, *TRAIN, *first)
    size = (tmp_path / "checkpoint_last.pt").stat().st_size

    command = ["resmlp-mt", "train", prepared, *TRAIN, "--save-dir", tmp_path]
    result = run(*command, **fill_disk(size // 2))
    assert_refused(result, "was not written", "Make room", ".pt: File too large")
    assert count_updates(load(tmp_path)) == 2
    assert not list(tmp_path.glob("*.tmp"))
