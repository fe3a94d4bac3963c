import shlex

import pytest
import torch
from checkpoints.test_released import forward, random_weights
from cli.commands import PLUGIN, call, refuse, run
from fairseq import checkpoint_utils
from models.test_families import build
from PIL import Image
from safetensors.torch import load_file, save_file

from resmlp_mt.analysis.probe import FeatureExtractor
from resmlp_mt.checkpoints.released import to_format
from resmlp_mt.errors import UserError

# hydra has much to say about how fairseq calls it.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
# Those of --arch resmlp_cifar, for images of 32 x 32 pixels.
SIZES = dict(side=8, patch=4, dim=128, depth=8, classes=3)
FLAGS = """--task image_classification --criterion image_classification --batch-size 4
    --num-workers 0""".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Weights in both layouts and both forms, and pictures of three classes."""
    out = tmp_path_factory.mktemp("weights")
    torch.manual_seed(1)
    for layout in ("official", "timm"):
        weights = {n: 0.2 * t.float() for n, t in random_weights(layout, **SIZES).items()}
        torch.save({"model": weights, "epoch": 300}, out / f"{layout}.pth")
        save_file(weights, out / f"{layout}.safetensors")
    (out / "names.txt").write_text("black\nred\nwhite\n")
    for split in ("train", "val"):
        for name in ("black", "red", "white"):
            (out / "pictures" / split / name).mkdir(parents=True)
            for number, size in enumerate([(32, 32), (40, 36), (50, 64)]):
                picture = Image.new("RGB", size, name)
                picture.save(out / "pictures" / split / name / f"{number}.png")
    return out


@pytest.fixture(scope="module")
def imported(folder):
    """The official weights as a folder."""
    arguments = [folder / "official.pth", "--arch", "resmlp_cifar", "--out", folder / "imported"]
    result = run("resmlp-mt", "import-weights", *arguments, "--classes", folder / "names.txt")
    assert "official weights, 1,100,035 parameters, images of 32 x 32 pixels, 3" in result.stdout
    return folder / "imported"


def load(folder):
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(folder / "model.pt")])
    return models[0].eval(), cfg, task


def read(path):
    return load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)


def test_a_folder_gives_the_logits_of_the_weights_it_was_made_from(folder, imported):
    assert [path.name for path in imported.iterdir()] == ["model.pt"]
    model, cfg, task = load(imported)
    images = torch.randn(2, 3, 32, 32)
    expected = forward(read(folder / "official.pth")["model"], images, "official")
    torch.testing.assert_close(
        model(images), expected, rtol=1e-3, atol=1e-3 * expected.std().item()
    )
    assert task.classes == ["black", "red", "white"]
    assert (cfg.task.image_size, cfg.task.crop_pct) == (32, 0.9)
    assert cfg.task.mean == [0.485, 0.456, 0.406] and cfg.model._name == "resmlp_cifar"


@pytest.mark.parametrize("layout", ["official", "timm"])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_what_was_imported_is_exported_bit_by_bit(folder, layout, suffix, tmp_path, capsys):
    arguments = [folder / f"{layout}{suffix}", "--arch", "resmlp_cifar"]
    call("import-weights", *arguments, "--out", tmp_path / "model")
    assert load(tmp_path / "model")[2].classes == ["0", "1", "2"]
    out = tmp_path / f"back{suffix}"
    call("export-weights", tmp_path / "model", "--format", layout, "--out", out)
    before, after = read(folder / f"{layout}.safetensors"), read(out)
    assert before.keys() == after.keys()
    assert all(before[n].equal(after[n]) and before[n].dtype == after[n].dtype for n in before)
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, "model"]
    assert f"{layout} weights" in capsys.readouterr().out


def test_fairseq_validates_and_fine_tunes_what_was_imported(folder, imported, tmp_path):
    common = [folder / "pictures", *PLUGIN, *FLAGS]
    validation = run("fairseq-validate", *common, "--path", imported / "model.pt")
    assert "top1" in validation.stdout + validation.stderr
    start = ["--finetune-from-model", imported / "model.pt", "--optimizer", "sgd", "--lr", 0]
    arch = ["--arch", "resmlp_cifar", "--image-size", 40, "--max-epoch", 1]
    save = ["--save-dir", tmp_path, "--no-epoch-checkpoints"]
    training = run("fairseq-train", *common, *start, *arch, *save)
    assert "interpolated from 8 x 8 to 10 x 10 patches" in training.stdout + training.stderr
    tuned = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
    model = load(imported)[0].state_dict()
    name = "stages.0.blocks.7.mix_channels.fc1.weight"
    assert tuned[name].equal(model[name]) and tuned["head.weight"].equal(model["head.weight"])


def test_weights_without_a_head_are_probed_and_not_classified_with(folder, tmp_path):
    weights = read(folder / "official.pth")["model"]
    torch.save({n: t for n, t in weights.items() if "head" not in n}, tmp_path / "x.pth")
    imported = tmp_path / "features"
    arguments = [tmp_path / "x.pth", "--arch", "resmlp_cifar", "--out", imported]
    result = run("resmlp-mt", "import-weights", *arguments, check=False)
    assert "no head: to probe and to fine-tune" in result.stdout
    values = FeatureExtractor.from_pretrained(imported).model(torch.randn(2, 3, 32, 32))
    assert values.shape == (2, 128)
    assert "study probe" in refuse("classify", imported, folder / "pictures")
    start = ["--finetune-from-model", imported / "model.pt", "--optimizer", "sgd", "--lr", 0]
    common = [folder / "pictures", *PLUGIN, *FLAGS, *start]
    size = ["--arch", "resmlp_cifar", "--image-size", 32, "--max-update", 1]
    tuned = run("fairseq-train", *common, *size, "--save-dir", tmp_path / "tuned")
    assert "the checkpoint has no head: the head starts anew" in tuned.stdout + tuned.stderr


@pytest.mark.parametrize(
    "name, weight, said",
    [
        ("patch_embed.proj.weight", torch.zeros(128, 1, 4, 4), "1 channels, not of 3"),
        ("blocks.0.attn.weight", torch.zeros(65, 65), "65 patches, which are no square grid"),
        ("epoch", 3, "no weights: epoch (int)"),
    ],
)
def test_weights_that_do_not_fit_are_refused(folder, tmp_path, name, weight, said):
    torch.save(load_file(folder / "official.safetensors") | {name: weight}, tmp_path / "x.pth")
    arguments = ["--arch", "resmlp_cifar", "--out", tmp_path / "out"]
    refused = refuse("import-weights", tmp_path / "x.pth", *arguments)
    assert refused.startswith(f"{tmp_path / 'x.pth'}: ") and said in refused
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--arch", "resmlp_tiny"], "--arch resmlp_tiny"),
        (["--image-size", 30], "--image-size 30"),
        (["--image-size", 0], "--image-size"),
        (["--classes", "few.txt"], "few.txt"),
        (["--classes", "none.txt"], "none.txt"),
        (["--out", "pictures"], "pictures"),
    ],
)
def test_flags_that_do_not_fit_are_refused(folder, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    (folder / "few.txt").write_text("a\nb\n")
    before = ["official.pth", "--arch", "resmlp_cifar", "--out", tmp_path / "out"]
    assert said in refuse("import-weights", *before, *arguments)
    assert not (tmp_path / "out").exists()


def test_weights_of_another_family_go_both_ways_and_its_preset_is_named(tmp_path, capsys):
    weights = to_format(build("gmlp_ti16", 32, 3).state_dict(), "timm")
    save_file({n: t.contiguous() for n, t in weights.items()}, tmp_path / "x.safetensors")

    def take(arch):
        arguments = [tmp_path / "x.safetensors", "--arch", arch, "--out", tmp_path / "model"]
        call("import-weights", *arguments)

    for arch in ("gmlp_s16", "resmlp_s24"):
        with pytest.raises(UserError, match="gmlp_ti16"):
            take(arch)
    take("gmlp_ti16")
    assert "timm weights" in capsys.readouterr().out
    cfg = load(tmp_path / "model")[1]
    assert (cfg.task.image_size, cfg.task.crop_pct, cfg.task.mean) == (32, 0.875, [0.5] * 3)
    out = tmp_path / "back.safetensors"
    call("export-weights", tmp_path / "model", "--format", "timm", "--out", out)
    back = read(out)
    assert back.keys() == weights.keys() and all(back[n].equal(weights[n]) for n in back)


def test_sizes_that_no_preset_has_follow_its_name(tmp_path, capsys):
    weights = random_weights("official", **SIZES | dict(dim=12, depth=2))
    weights["patch_embed.proj.weight"] = weights["patch_embed.proj.weight"][:, :1]
    weights = {n: t.float().contiguous() for n, t in weights.items()}
    save_file(weights, tmp_path / "x.safetensors")
    arch = "resmlp_cifar --embed-dim 12 --layers 2 --in-chans 1 --mean 0.5 --std 0.25"
    arguments = [tmp_path / "x.safetensors", "--out", tmp_path / "model", "--arch"]
    for wrong, said in (
        ("resmlp_cifar --in-chans=3 --layers 2", "--arch 'resmlp_cifar --layers 2 --in-chans 1'"),
        ("resmlp_cifar --in-chans 1", "--mean"),
        (f"{arch} --depth 2", "--depth 2"),
        (f"{arch} --image-size 64", "--image-size N"),
        (f"{arch} --num-classes 5", "--num-classes"),
    ):
        assert said in refuse("import-weights", *arguments, wrong)
    assert not (tmp_path / "model").exists()
    call("import-weights", *arguments, arch)
    assert load(tmp_path / "model")[0](torch.randn(1, 1, 32, 32)).shape == (1, 3)
    out = tmp_path / "back.safetensors"
    call("export-weights", tmp_path / "model", "--format", "official", "--out", out)
    back = read(out)
    assert back.keys() == weights.keys() and all(back[n].equal(weights[n]) for n in back)
    again = tmp_path / "again"
    printed = capsys.readouterr().out.split("to take them back: resmlp-mt ")[1]
    call(*shlex.split(printed.replace(" DIR", f" {again}")))
    before, after = (load(path)[1] for path in (tmp_path / "model", again))
    assert before == after and before.task.mean == [0.5]
