"""Which checkpoint a training goes on from, and which ones it refuses."""

import shutil

import pytest
from cli import commands
from cli.commands import RECIPE, SIZES, assert_refused, run


def train(data, folder, *flags, **options):
    return commands.train(data, folder, "--max-epoch", 3, *flags, check=False, **options)


@pytest.mark.parametrize("left", ["checkpoint3.pt", "checkpoint_best.pt"])
def test_without_the_last_checkpoint_a_training_goes_on_from_the_newest(left, prepared, folder):
    for path in folder.glob("checkpoint*.pt"):
        if path.name != left and (
            left == "checkpoint_best.pt" or path.name == "checkpoint_last.pt"
        ):
            path.unlink()
    result = train(prepared, folder)
    said = result.stdout + result.stderr
    assert result.returncode == 0 and f"going on from {folder}/{left}, the newest" in said
    assert "begin training epoch 1" not in said


def test_a_broken_last_checkpoint_is_refused_with_the_newest_of_the_others(prepared, folder):
    data = (folder / "checkpoint_last.pt").read_bytes()
    (folder / "checkpoint_last.pt").write_bytes(data[: len(data) // 2])
    said = f"go on from another: --restore-file {folder}/checkpoint3.pt"
    assert_refused(train(prepared, folder), "checkpoint_last.pt: truncated or corrupt", said)


def test_a_file_to_go_on_from_must_be_there(prepared, folder):
    refusal = train(prepared, folder, "--restore-file", "nosuch.pt")
    assert_refused(refusal, "--restore-file nosuch.pt: no such checkpoint")
    refusal = train(prepared, folder, "--restore-file", "checkpoint2.pt")
    assert_refused(refusal, f"did you mean {folder}/checkpoint2.pt?")


def test_a_place_within_an_epoch_of_other_data_is_refused(prepared, tmp_path):
    begun = train(prepared, tmp_path / "a", "--max-update", 4, "--save-interval-updates", 2)
    assert begun.returncode == 0
    within = ["--restore-file", tmp_path / "a/checkpoint_1_2.pt", "--max-tokens", 100_000]
    refusal = train(prepared, tmp_path / "b", *within)
    assert_refused(refusal, "checkpoint_1_2.pt: stands within an epoch of other data")
    assert train(prepared, tmp_path / "b", *within, "--reset-dataloader").returncode == 0


def test_weights_alone_are_no_training_to_go_on_with(prepared, folder, tmp_path):
    mean = tmp_path / "mean.pt"
    run("resmlp-mt", "average", folder, "--last", 2, "--out", mean)
    refusal = train(prepared, tmp_path / "new", "--restore-file", mean)
    assert_refused(refusal, f"{mean}: weights alone, ", "--finetune-from-model")
    reset = ["--restore-file", mean, "--reset-optimizer", "--max-update", 1]
    assert train(prepared, tmp_path / "new", *reset).returncode == 0


def test_a_training_from_a_file_goes_on_where_it_stopped(prepared, trained, tmp_path):
    begin = ["--restore-file", trained / "checkpoint1.pt", "--reset-meters", "--reset-optimizer"]

    def begin_epochs(folder, most):
        result = train(prepared, folder, *begin, "--max-epoch", most)
        assert result.returncode == 0
        return result.stdout + result.stderr

    first = begin_epochs(tmp_path / "a", 2)
    assert "begin training epoch 2" in first and "going on" not in first
    then = begin_epochs(tmp_path / "a", 3)
    assert f"going on from {tmp_path}/a/checkpoint_last.pt, the newest" in then
    assert "begin training epoch 3" in then and "begin training epoch 2" not in then
    (tmp_path / "a/checkpoint_last.pt").unlink()
    assert "begin training epoch 2" not in begin_epochs(tmp_path / "a", 3)
    # One that began otherwise is left for what is named, and so is a broken one.
    other, broken = (shutil.copytree(trained, tmp_path / name) for name in "bc")
    (broken / "checkpoint_last.pt").write_bytes(b"")
    for folder in (other, broken):
        assert "begin training epoch 2" in begin_epochs(folder, 2)
    again = train(prepared, tmp_path / "a", *begin, "--reset-dataloader", "--max-epoch", 1)
    assert "begin training epoch 1" in again.stdout + again.stderr


def test_a_folder_of_another_model_is_refused(prepared, folder):
    advice = "or into another --save-dir"
    refusal = train(prepared, folder, "--encoder-ffn-embed-dim", 32)
    assert_refused(refusal, f"{folder}/checkpoint_last.pt: ", "size mismatch for enc", advice)
    refusal = train(prepared, folder, arch="resmlp_tiny")  # another token mixer
    assert_refused(refusal, "the checkpoint is of another model: Missing key", advice)
    apart = [flag for flag in RECIPE if flag != "--share-all-embeddings"]
    command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_plus_tiny", *SIZES, *apart]
    refusal = run(*command, "--save-dir", folder, check=False)
    assert_refused(refusal, "of other embeddings that are shared", "another --save-dir")


def test_patience_counts_on_and_a_training_that_it_ended_is_done(prepared, trained, tmp_path):
    # It begins from weights, but goes on from its own checkpoints.
    flags = ["--lr", 0, "--patience", 2, "--finetune-from-model", trained / "checkpoint1.pt"]
    flags += ["--decoder-attention-heads", 4, "--dropout", 0.3]

    def train(epochs):
        result = commands.train(prepared, tmp_path, *flags, "--max-epoch", epochs)
        return result.stdout + result.stderr

    first = train(2)
    assert "early stop" not in first  # the first validation, and one that is no better
    assert "--decoder-attention-heads is 4, and was 2" in first
    assert "early stop since valid performance hasn't improved for last 2 runs" in train(9)
    assert (tmp_path / "checkpoint3.pt").exists() and not (tmp_path / "checkpoint4.pt").exists()
    again = train(9)
    assert "--patience 2 ended this training" in again and "other flags" not in again
    assert not (tmp_path / "checkpoint4.pt").exists()


@pytest.mark.parametrize("flag", ["--optimizer sgd", "--criterion cross_entropy"])
def test_another_optimizer_or_loss_is_refused_in_a_sentence(flag, prepared, folder):
    assert_refused(train(prepared, folder, *flag.split()), "--reset-optimizer")
