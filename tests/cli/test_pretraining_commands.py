"""Pre-training without labels, its evaluation and fine-tuning, as a user runs them."""

import csv
import shutil

import pytest
import torch
from cli.commands import (
    IMAGE_RECIPE,
    IMAGE_SIZES,
    PLUGIN,
    call,
    entries,
    load,
    once,
    refuse,
    run,
)
from fairseq import options

from resmlp_mt.analysis.probe import FeatureExtractor
from resmlp_mt.checkpoints.average import average_checkpoints
from resmlp_mt.checkpoints.pack import pack_model

RECIPE = """--task image_pretraining --criterion dino --store-ema --ema-decay 0.9 --optimizer adam
    --lr 0.001 --batch-size 24 --local-crops-number 2 --out-dim 32 --head-hidden-dim 16
    --bottleneck-dim 8 --num-workers 0 --log-format json --log-interval 2""".split()


def pretrain(data, out, *flags, recipe=RECIPE, **options):
    where = ["--save-dir", out, "--log-file", out.with_suffix(".log")]
    return run("fairseq-train", data, *PLUGIN, *IMAGE_SIZES, *recipe, *where, *flags, **options)


@pytest.fixture(scope="session")
def pretrained(shared, pictures):
    """The folder of a pre-training run of two epochs."""

    def make(out):
        pretrain(pictures, out, "--max-epoch", 2)
        out.with_suffix(".log").rename(out / "train.log")

    return once(shared / "pretrained", make)


def test_pretraining_logs_what_shows_a_collapse(pretrained):
    log = (pretrained / "train.log").read_text()
    for split in ("train", "valid"):
        found = entries(log, f"{split}_loss")
        assert len(found) == 2
        for name in ("loss", "teacher_entropy", "information", "kl"):
            assert float(found[-1][f"{split}_{name}"]) > 0


def test_resumed_pretraining_is_that_of_one_go(pretrained, pictures, tmp_path):
    shutil.copy(pretrained / "checkpoint1.pt", tmp_path / "checkpoint_last.pt")
    pretrain(pictures, tmp_path, "--max-epoch", 2)
    once, resumed = (load(folder / "checkpoint2.pt") for folder in (pretrained, tmp_path))
    for kept in (lambda state: state["model"], lambda state: state["extra_state"]["ema"]):
        for name, tensor in kept(once).items():
            torch.testing.assert_close(kept(resumed)[name], tensor)


def probe(*arguments):
    call("study", "probe", *arguments)


def test_probing_a_pretrained_model_takes_the_teacher(pretrained, pictures, tmp_path, capsys):
    path = pretrained / "checkpoint2.pt"
    result = run("resmlp-mt", "study", "probe", path, pictures, "--csv", tmp_path / "probe.csv")
    with (tmp_path / "probe.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["weights"]) for row in rows] == [("knn", "ema"), ("linear", "ema")]
    for line, row in zip(result.stdout.splitlines(), rows, strict=True):
        assert line.split()[:2] == [row["method"], row["top1"]] and row["images"] == "30"
        assert 0 <= float(row["top1"]) <= 100
    # The average as a model of its own is the same.
    average_checkpoints([path], tmp_path / "teacher.pt", ema=True)
    probe(tmp_path / "teacher.pt", pictures)
    assert capsys.readouterr().out == result.stdout


def test_a_folder_of_pretraining_stands_for_its_last_checkpoint(pretrained, pictures, tmp_path):
    folder = shutil.copytree(pretrained, tmp_path / "run")
    shutil.copy(folder / "checkpoint1.pt", folder / "checkpoint_best.pt")
    last = load(folder / "checkpoint_last.pt")["extra_state"]["ema"]
    tune = [pictures, *PLUGIN, *IMAGE_SIZES, *IMAGE_RECIPE, "--finetune-from-model"]
    for model, name in ((folder, "last"), (folder / "checkpoint_best.pt", "best")):
        kernel = FeatureExtractor.from_pretrained(model, device="cpu").model.stem.proj.weight
        assert torch.equal(kernel, last["stem.proj.weight"]) == (name == "last")
        pack_model(model, tmp_path / f"packed-{name}", half=False)
        packed = load(tmp_path / f"packed-{name}/model.pt")["model"]["stem.proj.weight"]
        assert torch.equal(packed, kernel)
        words = list(map(str, [*tune, model]))
        flags = options.parse_args_and_arch(options.get_training_parser(), words)
        assert flags.finetune_from_model == str(folder / f"checkpoint_{name}.pt")


def test_the_weights_and_the_method_can_be_chosen(pretrained, pictures, capsys):
    path, weights = pretrained / "checkpoint2.pt", load(pretrained / "checkpoint2.pt")
    for ema, kept in ((None, "ema"), (True, "ema"), (False, "model")):
        expected = weights["model"] if kept == "model" else weights["extra_state"]["ema"]
        extractor = FeatureExtractor.from_pretrained(path, ema, "cpu")
        assert extractor.averaged == (kept == "ema")
        for name, tensor in extractor.model.state_dict().items():
            assert torch.equal(tensor, expected[name])
    for flags, method in ((["--knn", 3], "knn"), (["--linear"], "linear")):
        probe(path, pictures, *flags)
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [method]


def test_pretraining_is_a_start_for_fine_tuning(pretrained, pictures, tmp_path):
    start = pretrained / "checkpoint2.pt"
    flags = ["--finetune-from-model", start, "--max-update", 1, "--lr", 1e-9, "--store-ema"]
    result = pretrain(pictures, tmp_path / "out", *flags, recipe=IMAGE_RECIPE)
    assert "'s head is another: the head starts anew" in result.stdout + result.stderr
    tuned, begun = load(tmp_path / "out" / "checkpoint_last.pt")["model"], load(start)["model"]
    assert tuned["head.weight"].shape == (3, 12)
    for name in tuned:
        if not name.startswith("head."):
            torch.testing.assert_close(tuned[name], begun[name])


def test_a_probe_needs_the_same_classes_on_both_sides(pretrained, pictures, tmp_path):
    shutil.copytree(pictures / "val", tmp_path / "val")
    shutil.copytree(pictures / "train" / "above", tmp_path / "train" / "other")
    path = pretrained / "checkpoint2.pt"
    assert "not the classes" in refuse("study", "probe", path, tmp_path)
