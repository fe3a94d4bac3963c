"""Each family of image models from its training to its export, by commands on real files."""

import json

import pytest
import torch
from cli.commands import IMAGE_RECIPE, assert_refused, call, entries, refuse, run
from PIL import Image

from resmlp_mt.cli.hyperrule import apply_hyperrule

FLAT = "--image-size 16 --patch-size 4 --embed-dim 12 --layers 2".split()
PYRAMID = "--image-size 16 --embed-dim 8,12 --layers 1,1".split()


def train(pictures, out, arch, *flags, **options):
    """By our command, which starts faster here than fairseq's, as test_images_train.py has it."""
    sizes = FLAT if arch.startswith(("resmlp", "mixer", "gmlp", "s2mlp")) else PYRAMID
    command = ["resmlp-mt", "train", pictures, "--arch", arch]
    save = ["--save-dir", out, "--no-epoch-checkpoints"]
    return run(*command, *IMAGE_RECIPE, *sizes, *save, *flags, **options)


NOTHING_TO_DRAW = {
    "s2mlp_deep": "s2mlp_deep",
    "poolformer_s12": "pooling",
}
UNDECAYED = ["--filter-bias-and-bn", "--optimizer"]


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("gmlp_ti16", [*UNDECAYED, "lamb"]),
        ("s2mlp_deep", ["--optimizer", "muon"]),
        ("poolformer_s12", ["--stem-stride", 2]),
        ("adafc_s", []),
    ],
)
def test_a_family_trains_classifies_and_is_exported(arch, flags, pictures, tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    train(pictures, tmp_path / "trained", arch, "--max-update", 2, *flags)
    state = torch.load(tmp_path / "trained/checkpoint_last.pt", weights_only=True)
    groups = state["last_optimizer_state"]["param_groups"]
    second = [0.0] if UNDECAYED[0] in flags else [0.01] if "muon" in flags else []
    assert [group["weight_decay"] for group in groups] == [0.01, *second]
    run("resmlp-mt", "export", tmp_path / "trained", "--out", tmp_path / "exported")
    picture = pictures / "val/left/0.png"
    found = []
    for name in ("trained", "exported"):
        result = run("resmlp-mt", "classify", tmp_path / name, picture, "--topk", 3, "--json")
        (entry,) = json.loads(result.stdout)
        found.append({guess["class"]: guess["probability"] for guess in entry["predictions"]})
    assert found[0] == pytest.approx(found[1], abs=1e-3) and "left" in found[0]
    plot = ["study", "mixing", tmp_path / "trained", "--out", tmp_path / "a.png"]
    if arch in NOTHING_TO_DRAW:
        assert f"'{NOTHING_TO_DRAW[arch]}' has no matrix A" in refuse(*plot)
        return
    call(*plot)
    assert min(Image.open(tmp_path / "a.png").size) > 400
    last = {"adafc_s": "stages 0 to 1"}.get(arch, "image 0 to 1")
    assert last in refuse(*plot, "--layers", 2)


def test_a_model_of_text_is_not_trained_on_images_nor_the_reverse(prepared, pictures, tmp_path):
    where = ["--save-dir", tmp_path / "x", "--max-update", 1]
    text = ["--optimizer", "adam", "--max-tokens", 100]
    for data, arch, flags, said in (
        (pictures, "resmlp_tiny", IMAGE_RECIPE, "resmlp_tiny is a model of text"),
        (prepared, "mixer_s16", text, "mixer_s16 is a model of images"),
    ):
        command = ["resmlp-mt", "train", data, "--arch", arch, *flags, *where]
        assert_refused(run(*command, check=False), said)


def test_flags_that_a_family_has_not_are_refused_without_a_wall_of_words(pictures, tmp_path):
    flags = ["--pooling", "class-mlp", "--max-update", 1]
    result = train(pictures, tmp_path / "x", "mixer_s16", *flags, check=False)
    assert_refused(result, "unrecognized arguments: --pooling class-mlp; neither --arch mixer_s16")
    assert "usage:" not in result.stderr
    result = train(pictures, tmp_path / "x", "resmlp_s12", "--token-mixer", "toeplitz", check=False)
    assert_refused(result, "--token-mixer", "toeplitz", "linear", "with --arch resmlp_s12")
    assert "usage:" not in result.stderr
    result = train(pictures, tmp_path / "x", "mixer_s16", *UNDECAYED, "adam", check=False)
    assert_refused(result, "--filter-bias-and-bn: the optimizer lets all weights decay; take --opt")


def test_the_hyperrule_prints_what_it_chose_and_what_was_given_stays(pictures, tmp_path):
    arch = ["--arch", "bit_r50x1", "--layers", "1,1", "--embed-dim", "128,128"]
    task = ["--task", "image_classification", "--criterion", "image_classification"]
    command = ["resmlp-mt", "train", pictures, *task, *arch, "--num-workers", 0]
    flags = ["--image-size", 32, "--supports", "1,2,3", "--max-sentences", 16]
    flags += ["--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints", "--wd=0.3"]
    said = run(*command, *flags, "--hyperrule", "--save-dir", tmp_path).stdout
    head, kept, chosen, *rest = said.splitlines()
    assert head.startswith("HyperRule, as in BiT's paper: ") and head.endswith(": a small task")
    assert kept == "  given, and kept: --batch-size --image-size --supports --weight-decay"
    for words in (
        "--square-resize 40 --crop-mode squash",
        "--optimizer sgd --momentum 0.9 --lr 0.003 --lr-scheduler hyperrule",
        "--max-update 3 --update-freq 32 --required-batch-size-multiple 1",
    ):
        assert words in chosen
    assert [e["lr"] for e in entries("\n".join(rest), "update") if "gnorm" in e] == [
        "0.003",
        "0.003",
        "0.0003",
    ]
    cfg = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["cfg"]
    chosen = [cfg["task"][name] for name in ("square_resize", "crop_mode", "mixup")]
    assert (chosen, cfg["optimizer"].weight_decay) == ([40, "squash", 0.0], 0.3)
    other = "--optimizer adam --lr-scheduler cosine --max-update 1 --batch-size 8".split()
    said = run(*command, *other, "--hyperrule", "--image-size", 32, "--no-save").stdout
    assert "--momentum" not in said.splitlines()[2] and "--supports" not in said.splitlines()[2]
    assert "'bit_r50x1'" in refuse("study", "mixing", tmp_path, "--out", tmp_path / "a.png")
    for more, said in (
        (["--hyperrule", "--task", "image_pretraining"], "is for --task image_classification, not"),
        (["--hyperrule", "--square-resize", 31], "--square-resize 31 is smaller than the part"),
    ):
        refused = run(*command, *flags, *more, "--save-dir", tmp_path, check=False)
        assert_refused(refused, said)


@pytest.mark.parametrize(
    ("torchrun", "flags", "chosen"),
    [
        ("4", ["--distributed-world-size", "2"], "--batch-size 128 --update-freq 1"),
        (None, ["--distributed-world-size", "2"], "--batch-size 256 --update-freq 1"),
        (None, ["--distributed-world-size", "2", "--batch-size", "32"], "--update-freq 8"),
    ],
)
def test_several_workers_see_the_images_of_the_hyperrule_together(
    torchrun, flags, chosen, pictures, monkeypatch, capsys
):
    rank = torchrun and str(int(torchrun) - 1)
    for name, value in {"WORLD_SIZE": torchrun, "LOCAL_RANK": rank, "RANK": rank}.items():
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)
    task = ["--task", "image_classification", "--criterion", "image_classification"]
    words = apply_hyperrule(["--hyperrule", str(pictures), *task, "--arch", "bit_r50x1", *flags])
    assert f" {chosen} " in f" {' '.join(words)} "
    # The first worker alone says so.
    assert bool(capsys.readouterr().out) == (torchrun in (None, "1"))
