"""Two workers on CPUs, started by torchrun, against one; and data in several folders."""

import os
import re
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from cli.commands import (
    CHUNKS,
    IMAGE_RECIPE,
    IMAGE_SIZES,
    PLUGIN,
    RECIPE,
    ROOT,
    SIZES,
    assert_refused,
    entries,
    load,
    once,
    run,
    start,
    wait_for,
)

from resmlp_mt.compat.workers import find_port

TORCHRUN = ["torchrun", "--standalone", "--nproc_per_node", 2, "--no-python", "resmlp-mt"]
# What is drawn at random depends on the worker.
TEXT = ["--arch", "resmlp_plus_tiny", *SIZES, *RECIPE, "--label-smoothing", 0.1, "--dropout", 0]
PICTURES = [*IMAGE_SIZES, *IMAGE_RECIPE, "--hflip", 0, "--color-jitter", 0]
FRUGAL = ["--checkpoint-activations"]  # changes nothing but the memory

# An epoch of two workers is 25 updates.
LONG = [*TEXT, "--max-tokens", 300, "--max-epoch", 2, "--disable-validation", "--log-interval", 1]
LONG += ["--save-interval-updates", 5, "--keep-interval-updates", 1, "--keep-last-epochs", 1]


def run_two(*command, check=True):
    """The results of two workers that are started without torchrun, by their number."""
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(find_port())}

    def work(rank):
        environment = {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank), **meet}
        return run(*(str(w).format(rank=rank) for w in command), env=environment, check=False)

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(work, range(2)))
    if check:
        for result in results:
            assert result.returncode == 0, result.stderr[-4000:]
            assert "is deprecated" not in result.stderr
    return results


def weights(folder):
    return load(folder)["model"]


def count_updates(folder) -> int:
    return load(folder)["optimizer_history"][-1]["num_updates"]


def assert_same(folder, other):
    found, expected = weights(folder), weights(other)
    assert count_updates(folder) == count_updates(other)
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


@pytest.fixture(scope="session")
def alone(shared, prepared, pictures):
    """alone(kind): the data and flags, and the folder of a training in which one worker adds up."""
    kinds = {"text": (prepared, TEXT), "images": (pictures, PICTURES)}

    def find(kind):
        data, flags = kinds[kind]

        def make(out):
            goal = ["--max-update", 4, "--log-interval", 1, "--update-freq", 2]
            log = run("resmlp-mt", "train", data, *flags, *goal, "--save-dir", out)
            (out / "train.log").write_text(log.stdout + log.stderr)

        return data, flags, once(shared / f"alone-{kind}", make)

    return find


@pytest.mark.parametrize(
    ("kind", "ddp", "more"),
    [("text", "pytorch_ddp", [*CHUNKS, *FRUGAL]), ("images", "legacy_ddp", FRUGAL)],
    ids=["text in chunks", "images"],
)
def test_two_workers_that_go_on_train_as_one_that_adds_up_two_batches(
    kind, ddp, more, alone, tmp_path
):
    data, flags, one = alone(kind)
    log = ""
    for updates in (2, 4):
        goal = [*more, "--ddp-backend", ddp, "--max-update", updates, "--log-interval", 1]
        first, _ = run_two("resmlp-mt", "train", data, *flags, *goal, "--save-dir", tmp_path)
        log += first.stdout + first.stderr
    by_two, by_one = (
        torch.tensor([float(entry["loss"]) for entry in entries(text, "ups")])
        for text in (log, (one / "train.log").read_text())
    )
    assert len(by_two) == 4
    torch.testing.assert_close(by_two, by_one, atol=1e-3, rtol=1e-4)
    found, expected = weights(tmp_path), weights(one)
    for name in list(found):
        # Softmax takes the bias of the keys out. Its gradient is rounding, which Adam makes large.
        if name.endswith("attend.key.bias"):
            del found[name], expected[name]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="session")
def by_two(shared, prepared) -> Path:
    """The folder of a training by two workers that nothing stopped."""
    command = ["resmlp-mt", "train", prepared, *LONG, "--save-dir"]
    return once(shared / "by-two", lambda out: run_two(*command, out))


def find_workers(torchrun) -> list[int]:
    """The processes of the workers, in order."""
    workers = {}
    for child in Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children").read_text().split():
        for variable in Path(f"/proc/{child}/environ").read_text().split("\0"):
            if variable.startswith("LOCAL_RANK="):
                workers[variable] = int(child)
    return [workers[rank] for rank in sorted(workers)]


def test_stopped_by_sigterm_to_every_process_they_go_on_where_they_were(prepared, by_two, tmp_path):
    program = ["fairseq-train", prepared, *PLUGIN, *LONG]
    program += ["--save-dir", tmp_path]
    process = start(*TORCHRUN[:-1], *program)
    wait_for("training on 2 devices", process)
    wait_for('"ups"', process)
    # As schedulers do; torchrun sends the workers one more.
    for number in (*find_workers(process), process.pid):
        os.kill(number, signal.SIGTERM)
    rest, _ = process.communicate(timeout=1800)
    assert process.returncode == 1 and rest.count("SIGTERM: saving and stopping") == 1
    assert "forcefully" not in rest  # torchrun kills a worker that waits for the other
    (logged,) = entries(rest, "train_num_updates")
    assert count_updates(tmp_path) == int(logged["train_num_updates"]) > 0
    run_two(*program)
    assert_same(tmp_path, by_two)


def test_one_worker_goes_on_for_two_whose_torchrun_was_killed_and_they_for_it(
    prepared, by_two, tmp_path
):
    # Its workers watch over it; these are processes of their own, as for a user.
    process = start(*TORCHRUN, "train", prepared, *LONG, "--save-dir", tmp_path, own=True)
    wait_for('"num_updates": "7"', process)
    process.kill()
    process.communicate(timeout=1800)  # until the workers have ended, who write where it did
    done = count_updates(tmp_path)
    assert 7 <= done < 50
    command = ["resmlp-mt", "train", prepared, *LONG, "--save-dir", tmp_path]
    run(*command, "--max-update", done + 6, "--update-freq", 2)
    assert count_updates(tmp_path) == done + 6
    run_two(*command)
    assert count_updates(tmp_path) == count_updates(by_two)
    torch.testing.assert_close(weights(tmp_path), weights(by_two), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("other", "said"), [(False, "has no "), (True, "of 4 updates")])
def test_no_worker_waits_for_one_without_a_checkpoint(
    other, said, prepared, by_two, alone, tmp_path
):
    for rank, source in enumerate([by_two, *[alone("text")[2]] * other]):
        (tmp_path / f"{rank}").mkdir()
        shutil.copy(source / "checkpoint_last.pt", tmp_path / f"{rank}")
    command = ["resmlp-mt", "train", prepared, *LONG, "--save-dir", tmp_path / "{rank}"]
    for result in run_two(*command, check=False):
        assert_refused(result)
        assert re.search(said, result.stderr), result.stderr[-2000:]


def test_a_port_that_is_taken_is_named(prepared, tmp_path):
    command = ["resmlp-mt", "train", prepared, *LONG, "--save-dir", tmp_path]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
        result = run(*command, env=place | ranks, check=False)
    assert_refused(result, "MASTER_PORT", port)


@pytest.fixture
def two_gpus(tmp_path) -> dict[str, str]:
    """An environment in which fairseq counts two GPUs, and starts a worker for each of them."""
    (tmp_path / "gpus").mkdir()
    # Not for the process that multiprocessing starts to watch over what is shared.
    counting = """
        import sys
        if "resource_tracker" not in " ".join(sys.orig_argv):
            import torch
            torch.cuda.device_count = lambda: 2
    """
    (tmp_path / "gpus/sitecustomize.py").write_text(dedent(counting))
    return {"PYTHONPATH": f"{tmp_path / 'gpus'}:{ROOT}"}


def test_sigterm_stops_the_workers_that_fairseq_started(two_gpus, prepared, tmp_path):
    out = tmp_path / "out"
    process = start("resmlp-mt", "train", prepared, *LONG, "--save-dir", out, env=two_gpus)
    wait_for('"ups"', process)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=1800)
    assert process.returncode == 0 and rest.count("SIGTERM: saving and stopping") == 1
    assert "Traceback" not in rest and 0 < count_updates(out) < 50


@pytest.mark.parametrize(
    ("flags", "tasks", "said"),
    [(["--distributed-world-size", 2], "1", "there are 0"), ([], "4", "srun started 4 tasks")],
)
def test_workers_without_gpus_are_for_torchrun_to_start(flags, tasks, said, prepared, tmp_path):
    command = ["resmlp-mt", "train", prepared, *TEXT, *flags, "--save-dir", tmp_path]
    result = run(*command, env={"SLURM_STEP_NUM_TASKS": tasks}, check=False)
    assert_refused(result, said, "torchrun")
    assert not list(tmp_path.iterdir())


def test_sigterm_to_one_worker_in_a_validation_stops_all(much_to_validate, tmp_path):
    slow = ["--encoder-layers", 12, "--batch-size-valid", 1, "--max-target-positions", 60]
    command = [*TORCHRUN, "train", much_to_validate, *TEXT, *slow, "--save-dir", tmp_path]
    process = start(*command)
    wait_for("begin validation", process)
    os.kill(find_workers(process)[1], signal.SIGTERM)
    rest, _ = process.communicate(timeout=1800)
    assert process.returncode == 0 and rest.count("SIGTERM: saving and stopping") == 1
    assert '"valid_loss"' not in rest and "Traceback" not in rest
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint1.pt", "checkpoint_last.pt"}


def test_sharded_data_is_a_folder_an_epoch_in_turn(prepared, tmp_path):
    small = shutil.copytree(prepared, tmp_path / "small")
    (small / "report.json").unlink()  # it has the sums of another training set
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
