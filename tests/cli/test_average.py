import math
import re
import shutil

import pytest
import torch
from cli.commands import call, load, refuse, run

from resmlp_mt.files.finding import numbered_checkpoints


def average(*arguments, **options):
    return run("resmlp-mt", "average", *arguments, **options)


def assert_mean(out, paths):
    models = [load(path)["model"] for path in paths]
    for name, tensor in load(out)["model"].items():
        mean = sum(model[name].double() for model in models) / len(models)
        torch.testing.assert_close(tensor, mean.float(), rtol=0, atol=0)


def test_last_takes_the_latest_epochs(trained, tmp_path):
    result = average(trained, "--last", 2, "--out", tmp_path / "mean.pt")
    paths = [trained / "checkpoint2.pt", trained / "checkpoint3.pt"]
    assert_mean(tmp_path / "mean.pt", paths)
    assert re.findall(r"  (\S+)", result.stdout) == list(map(str, paths))


def test_checkpoints_of_updates_serve_where_there_are_too_few_of_epochs(trained, tmp_path):
    for name in ("_1_200", "_1_1000", "_2_900", "1", "_last"):
        shutil.copy(trained / "checkpoint1.pt", tmp_path / f"checkpoint{name}.pt")
    assert numbered_checkpoints(tmp_path) == [
        (tmp_path / f"checkpoint{name}.pt", name == "1")
        for name in ("_1_200", "_1_1000", "1", "_2_900")
    ]
    out = ["--out", tmp_path / "mean.pt"]
    for count, expected in (1, ["1"]), (2, ["_1_1000", "_2_900"]):
        result = average(tmp_path, "--last", count, *out, check=False)
        assert re.findall(r"/checkpoint(\w+)\.pt\n", result.stdout) == expected
    assert "but not 4 of a kind" in refuse("average", tmp_path, "--last", 4, *out)


@pytest.mark.parametrize("maximize", [False, True])
def test_best_takes_the_best_in_validation(trained, tmp_path, maximize):
    scores = {1: 5.0, 2: 3.0, 3: 4.0}
    for number, score in scores.items():
        state = load(trained / f"checkpoint{number}.pt")
        state["extra_state"]["val_loss"] = score
        state["cfg"]["checkpoint"]["maximize_best_checkpoint_metric"] = maximize
        torch.save(state, tmp_path / f"checkpoint{number}.pt")
    call("average", tmp_path, "--best", 2, "--out", tmp_path / "mean.pt")
    best = sorted(scores, key=scores.get, reverse=maximize)[:2]
    assert_mean(tmp_path / "mean.pt", [tmp_path / f"checkpoint{n}.pt" for n in best])
    # What was kept for its score counts too, and twice the same once.
    (tmp_path / f"checkpoint{best[0]}.pt").rename(tmp_path / "checkpoint.best_loss_5.00.pt")
    shutil.copy(tmp_path / f"checkpoint{best[1]}.pt", tmp_path / "checkpoint_best.pt")
    call("average", tmp_path, "--best", 2, "--out", tmp_path / "again.pt")
    for name, tensor in load(tmp_path / "mean.pt")["model"].items():
        assert tensor.equal(load(tmp_path / "again.pt")["model"][name])
    state["extra_state"]["val_loss"] = math.nan  # which no other is better than
    torch.save(state, tmp_path / "checkpoint3.pt")
    refused = refuse("average", tmp_path, "--best", 2, "--out", tmp_path / "other.pt")
    assert "checkpoint3.pt: its validation score is nan" in refused


def test_a_mean_generates_and_translates(trained, prepared, tmp_path):
    paths = [trained / f"checkpoint{number}.pt" for number in (1, 3)]
    call("average", *paths, "--out", tmp_path / "mean.pt")
    generate = ["resmlp-mt", "generate", prepared, "--path", tmp_path / "mean.pt"]
    assert "Generate test" in run(*generate).stdout
    result = run("resmlp-mt", "translate", "--model", tmp_path / "mean.pt", "The dog sleeps.")
    assert result.stdout.count("\n") == 1


def test_what_a_training_goes_on_from_is_not_replaced(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    before = {path: path.read_bytes() for path in folder.glob("checkpoint*.pt")}
    (folder / "latest.pt").symlink_to("checkpoint_last.pt")
    for name in ("checkpoint3.pt", "checkpoint_last.pt", "checkpoint_best.pt", "latest.pt"):
        said = refuse("average", folder, "--last", 2, "--out", folder / name)
        assert f"{folder / name}: " in said
    assert before == {path: path.read_bytes() for path in folder.glob("checkpoint*.pt")}


def test_a_diverged_checkpoint_is_named(trained, tmp_path):
    state = load(trained / "checkpoint2.pt")
    for tensor in state["model"].values():
        tensor.fill_(math.nan)
    broken = tmp_path / "broken.pt"
    torch.save(state, broken)
    paths = [trained / "checkpoint1.pt", broken, "--out", tmp_path / "x.pt"]
    said = refuse("average", *paths)
    assert f"{broken}: " in said and "no numbers" in said


def test_other_models_and_missing_files_are_refused(trained, tmp_path):
    state = load(trained / "checkpoint1.pt")
    state["model"].popitem()
    torch.save(state, other := tmp_path / "other.pt")
    out = ["--out", tmp_path / "x.pt"]
    both = trained / "checkpoint1.pt", other
    assert "not of the same model" in refuse("average", *both, *out)
    (tmp_path / "export.json").touch()
    assert "exported" in refuse("average", tmp_path, "--last", 1, *out)
    # What cannot be written is refused before anything is read.
    for command in (["average"], ["study", "mixing"]):
        said = refuse(*command, tmp_path / "none.pt", "--out", tmp_path)
        assert f"{tmp_path}: a folder" in said or "--out" in said
