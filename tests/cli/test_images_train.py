"""Training and validating classifiers, as a user does, with our commands and fairseq's programs.

Ours start faster here, and do the same, so that fairseq's are for a few tests.
"""

import json
import os
import shutil
import signal
import tarfile

import pytest
import torch
from cli.commands import (
    IMAGE_RECIPE,
    IMAGE_SIZES,
    PLUGIN,
    assert_refused,
    entries,
    load,
    run,
    start,
    wait_for,
)
from cli.pictures import CLASSES, draw_pictures

STOCK = {"program": ("fairseq-train",)}


def train(data, out, *flags, program=("resmlp-mt", "train"), **options):
    plugin = PLUGIN if len(program) == 1 else []
    where = ["--save-dir", out, "--log-file", out.with_suffix(".log")]
    return run(*program, data, *plugin, *IMAGE_SIZES, *IMAGE_RECIPE, *where, *flags, **options)


def weights(path):
    return load(path)["model"]


def validate(data, path, *flags, program=("resmlp-mt", "validate"), **options):
    plugin = [*PLUGIN, "--task", "image_classification"] if len(program) == 1 else []
    common = ["--path", path, "--batch-size", 16, "--log-format", "json", "--num-workers", 0]
    result = run(*program, data, *plugin, *common, *flags, **options)
    found = entries(result.stdout + result.stderr, "valid_top1")
    return {name: float(value) for name, value in found[-1].items()} if found else result


def test_training_learns_the_pictures_and_keeps_the_names_of_their_classes(classifier):
    state = torch.load(classifier / "checkpoint_best.pt", weights_only=True)
    assert state["task_state"] == {"classes": list(CLASSES)}
    valid = entries((classifier / "train.log").read_text(), "valid_top1")
    assert len(valid) == 6
    assert float(valid[-1]["valid_top1"]) > 90
    assert float(valid[-1]["valid_top5"]) == 100
    assert float(valid[-1]["valid_loss"]) < float(valid[0]["valid_loss"])


def test_validate_agrees_with_the_training_whatever_form_the_data_has(
    classifier, pictures, tmp_path
):
    last = entries((classifier / "train.log").read_text(), "valid_top1")[-1]
    path = classifier / "checkpoint_last.pt"
    with tarfile.open(tmp_path / "pictures.tar.xz", "w:xz") as archive:
        archive.add(pictures, "pictures")
    by_stock = validate(pictures, path, program=("fairseq-validate",))
    by_own = validate(tmp_path / "pictures.tar.xz", path)
    for name in ("valid_top1", "valid_top5", "valid_loss"):
        assert by_stock[name] == by_own[name] == pytest.approx(float(last[name]), abs=1e-4)


def test_the_moving_average_is_validated_beside_the_weights_and_can_be_taken(
    classifier, pictures, tmp_path
):
    last = entries((classifier / "train.log").read_text(), "valid_ema_top1")[-1]
    path = classifier / "checkpoint_last.pt"
    taken = run("resmlp-mt", "average", path, "--ema", "--out", tmp_path / "ema.pt")
    assert f"ema.pt, the mean of the moving averages in\n  {path}\n" in taken.stdout
    assert validate(pictures, tmp_path / "ema.pt")["valid_top1"] == float(last["valid_ema_top1"])
    state = torch.load(path, weights_only=True)
    kept = state["extra_state"]["ema"]
    assert any(not torch.equal(kept[n], w) for n, w in state["model"].items())
    for name, tensor in weights(tmp_path / "ema.pt").items():
        torch.testing.assert_close(tensor, kept[name])


def test_a_resumed_training_ends_as_an_uninterrupted_one(pictures, tmp_path):
    recipe = ["--aa", "rand-m5", "--mixup", 0.8, "--cutmix", 1.0, "--reprob", 0.2]
    recipe += ["--aug-repeats", 2, "--drop-path", 0.1, "--lr-scheduler", "cosine"]
    recipe += ["--warmup-updates", 2, "--max-update", 12, "--num-workers", 1]
    train(pictures, tmp_path / "whole", *recipe, **STOCK)
    train(pictures, tmp_path / "parts", *recipe, "--max-epoch", 1)
    train(pictures, tmp_path / "parts", *recipe)
    whole, parts = (weights(tmp_path / n / "checkpoint_last.pt") for n in ("whole", "parts"))
    assert all(torch.equal(tensor, parts[name]) for name, tensor in whole.items())


def test_bf16_starts_as_fp32_does_and_lamb_trains_without_apex(pictures, tmp_path):
    flags = ["--max-update", 6, "--log-interval", 1, "--optimizer", "lamb"]
    losses = {}
    for name, more in {"fp32": [], "bf16": ["--bf16"]}.items():
        output = train(pictures, tmp_path / name, *flags, *more)
        log = entries(output.stdout + output.stderr, "loss")
        losses[name] = torch.tensor([float(e["loss"]) for e in log if "num_updates" in e])
    assert len(losses["fp32"]) == 6
    torch.testing.assert_close(losses["bf16"], losses["fp32"], atol=0.02, rtol=0)
    assert losses["fp32"][-1] < losses["fp32"][0]


def test_a_teacher_is_learnt_from_and_must_know_the_same_classes(classifier, pictures, tmp_path):
    flags = ["--teacher-model", classifier, "--distillation-alpha", 1.0, "--max-epoch", 4]
    flags += ["--best-checkpoint-metric", "top1", "--maximize-best-checkpoint-metric"]
    output = train(pictures, tmp_path / "student", *flags)
    valid = entries(output.stdout + output.stderr, "valid_top1")
    # All it was told came from the teacher.
    assert float(valid[-1]["valid_top1"]) > 80
    others = tmp_path / "others"
    draw_pictures(others, {"train": 2, "val": 1}, classes=("above", "left"))
    refused = train(others, tmp_path / "x", *flags, check=False)
    assert_refused(refused, "--teacher-model", "other classes", "only the teacher: over")
    flags[1] = "multi30k-en-de"
    assert_refused(train(pictures, tmp_path / "x", *flags, check=False), "no classifier of images")


def test_fine_tuning_takes_other_classes_and_other_sizes(classifier, tmp_path):
    draw_pictures(tmp_path / "two", {"train": 16, "val": 4}, classes=("left", "over"))
    start = ["--finetune-from-model", classifier, "--image-size", 24]
    output = train(tmp_path / "two", tmp_path / "tuned", *start, "--max-update", 1, "--lr", 1e-9)
    assert "interpolated from 4 x 4 to 6 x 6 patches" in output.stdout + output.stderr
    assert "head starts anew" in output.stdout + output.stderr
    old, new = (
        weights(classifier / "checkpoint_best.pt"),
        weights(tmp_path / "tuned/checkpoint_last.pt"),
    )
    name = "stages.0.blocks.1.mix_channels.fc1.weight"
    torch.testing.assert_close(new[name], old[name])
    assert new["head.weight"].shape == (2, 12)


def test_what_does_not_fit_a_checkpoint_is_listed(classifier, pictures, tmp_path):
    shutil.copytree(classifier, tmp_path / "run")
    resumed = train(pictures, tmp_path / "run", "--image-size", 24, "--max-epoch", 9, check=False)
    assert_refused(resumed, "of another model", "blocks.0.mix_tokens.matrix.weight (1, 16, 16)")
    start = ["--finetune-from-model", classifier / "checkpoint_best.pt", "--norm", "layer"]
    tuned = train(pictures, tmp_path / "x", *start, check=False)
    assert_refused(
        tuned, "missing: stages.0.blocks.0.norm_1.weight", "unknown: stages.0.blocks.0.norm_1.alpha"
    )


def test_validate_takes_images_of_another_size(classifier, pictures, tmp_path):
    start = ["--finetune-from-model", classifier, "--image-size", 24, "--crop-pct", 0.75]
    train(pictures, tmp_path / "larger", *start, "--max-update", 1, "--lr", 1e-12)
    expected = validate(pictures, tmp_path / "larger")["valid_loss"]
    best = classifier / "checkpoint_best.pt"
    found = validate(pictures, best, "--image-size", 24, "--crop-pct", 0.75)["valid_loss"]
    assert found == pytest.approx(expected, abs=0.002)
    assert validate(pictures, classifier)["valid_loss"] != pytest.approx(expected, abs=0.002)


def test_validation_counts_several_labels_an_image_and_folders_that_are_numbers(
    classifier, tmp_path
):
    """ImageNet-ReaL and ImageNet-V2, in their form."""
    draw_pictures(tmp_path / "pictures", {"val": 4})
    paths = []
    for i, name in enumerate(CLASSES):
        (tmp_path / f"data/val/{i}").mkdir(parents=True)
        for path in sorted((tmp_path / f"pictures/val/{name}").iterdir()):
            paths.append(tmp_path / f"data/val/{i}/ILSVRC2012_val_{len(paths) + 1:08}.JPEG")
            shutil.copy(path, paths[-1])
    said = run("resmlp-mt", "classify", classifier, *paths, "--topk", 1, "--json").stdout
    guesses = [CLASSES.index(entry["predictions"][0]["class"]) for entry in json.loads(said)]
    others = [(guess + 1) % 3 for guess in guesses]
    # In turn: not counted, right, wrong, right.
    labels = [[[], [g], [o], [o, g]][i % 4] for i, (g, o) in enumerate(zip(guesses, others))]  # noqa: B905
    (tmp_path / "real.json").write_text(json.dumps(labels))
    flag = ["--real-labels", tmp_path / "real.json"]
    best = classifier / "checkpoint_best.pt"
    found = validate(tmp_path / "data", best, *flag)
    truth = [int(path.parent.name) for path in paths]
    assert found["valid_top1"] == pytest.approx(
        100 * sum(g == t for g, t in zip(guesses, truth, strict=True)) / 12, abs=0.01
    )
    assert (found["valid_real_top1"], found["valid_real_top5"]) == (66.67, 100)
    (tmp_path / "real.json").write_text("[[3]]")
    refused = validate(tmp_path / "data", best, *flag, check=False)
    assert_refused(refused, "image 1 has the labels [3], the model 3 classes")


def test_a_broken_image_that_another_process_reads_is_refused_in_validation(
    classifier, pictures, tmp_path
):
    data = shutil.copytree(pictures, tmp_path / "data")
    (bad := data / "val/over/2.png").write_bytes(b"not an image")
    result = validate(data, classifier, "--num-workers", 1, check=False)
    assert_refused(result, str(bad))


def test_bad_input_is_one_message(pictures, tmp_path):
    def refuse(data, *flags, said, **options):
        result = train(data, tmp_path / "x", *flags, check=False, **options)
        assert_refused(result, *said)
        assert len(result.stderr.strip().splitlines()[-1]) < 600

    refuse(pictures, "--image-size", 18, **STOCK, said=["18 x 18", "--patch-size"])
    refuse(pictures, "--mean", "0.5", said=["--mean"])
    data = shutil.copytree(pictures, tmp_path / "data")
    shutil.move(data / "val/over", data / "val/under")
    refuse(data, said=["over", "under"])
    shutil.move(data / "val/under", data / "val/over")
    for path in data.glob("train/*/*.png"):
        path.write_bytes(b"broken")
    refuse(data, said=["not PNG, JPEG, GIF or WebP"])


def test_a_moving_average_begins_where_a_checkpoint_has_none_or_another_size(
    classifier, pictures, tmp_path
):
    run("resmlp-mt", "pack", classifier, "--out", tmp_path / "packed")
    flags = ["--max-update", 1, "--lr", 1e-9, "--store-ema", "--ema-fp32", "--ema-decay", 0.5]
    train(pictures, tmp_path / "one", "--finetune-from-model", tmp_path / "packed", *flags)
    larger = ["--image-size", 24, "--finetune-from-model", tmp_path / "one/checkpoint_last.pt"]
    train(pictures, tmp_path / "two", *larger, *flags)
    state = torch.load(tmp_path / "two/checkpoint_last.pt", weights_only=True)
    extra = state["extra_state"]
    for average in (extra["ema"], extra["ema_fp32_params"]):
        for name, weight in average.items():
            torch.testing.assert_close(weight, state["model"][name])
    # What an earlier head left in the fine copy is no part of the average.
    extra["ema_fp32_params"]["head.prototypes"] = torch.ones(3)
    torch.save(state, tmp_path / "left.pt")
    run("resmlp-mt", "average", tmp_path / "left.pt", "--ema", "--out", tmp_path / "ema.pt")
    assert weights(tmp_path / "ema.pt").keys() == state["model"].keys()


def test_sigterm_to_every_process_ends_a_training_that_waits_for_its_readers(tmp_path):
    """As systemd and Slurm send it, in the middle of an update that needs more of their batches."""
    draw_pictures(tmp_path / "images", {"train": 100, "val": 1})
    recipe = ["--task", "image_classification", "--criterion", "image_classification"]
    recipe += ["--optimizer", "adam", "--lr", 0.01, "--batch-size", 1, "--update-freq", 30]
    recipe += ["--num-workers", 2, "--aa", "rand-m9-mstd0.5-inc1", "--log-interval", 1]
    out = ["--save-dir", tmp_path / "out", "--log-format", "json", "--disable-validation"]
    command = ["resmlp-mt", "train", tmp_path / "images", *IMAGE_SIZES, *recipe, *out]
    process = start(*command, own=True, start_new_session=True)
    wait_for('"ups"', process)
    os.killpg(process.pid, signal.SIGTERM)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 0 and "SIGTERM: saving and stopping" in said, said[-3000:]
    assert (tmp_path / "out" / "checkpoint_last.pt").exists() and "Traceback" not in said
