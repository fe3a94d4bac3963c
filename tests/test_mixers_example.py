"""examples/cifar10: its shuffled images, and the study of all mixers."""

import csv
import itertools
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from cli.commands import run
from cli.pictures import draw_pictures
from cli.zygote import find_commands
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import nn
from torch.testing import assert_close

from resmlp_mt.errors import UserError
from resmlp_mt.nn.cycle import CycleMLP
from resmlp_mt.nn.grid_mixers import GridConvolution
from resmlp_mt.nn.map_mixers import AdaFC, AxisWeights, Pooling
from resmlp_mt.nn.patches import MoveChannels

CIFAR10 = Path(__file__).parents[1] / "examples" / "cifar10"
GRID, PATCH, C = 3, 4, 8
SIDE = GRID * PATCH


@pytest.fixture(scope="module")
def shuffled():
    """The plugin of the example."""
    sys.path.insert(0, str(CIFAR10))
    import shuffled

    yield shuffled
    sys.path.remove(str(CIFAR10))


def build(preset, **flags):
    if preset != "resnet_cifar":
        flags |= dict(patch_size=PATCH, embed_dim=C, layers=2, drop_path=0.0)
    cfg = SimpleNamespace(width=8, blocks=1, **flags)
    ARCH_CONFIG_REGISTRY.get(preset, lambda cfg: None)(cfg)
    task = SimpleNamespace(in_chans=3, image_size=SIDE, build_head=lambda dim: nn.Linear(dim, 5))
    return ARCH_MODEL_REGISTRY[preset].build_model(cfg, task)


def find_moves(order):
    """The patch that each patch of a shuffled image is, and the pixel that each pixel in it is."""
    sources = order.view(GRID, PATCH, GRID, PATCH).transpose(1, 2).reshape(GRID**2, PATCH**2)
    rows, columns = sources // SIDE, sources % SIDE
    patches = rows // PATCH * GRID + columns // PATCH
    pixels = rows % PATCH * PATCH + columns % PATCH
    assert (patches == patches[:, :1]).all() and (pixels == pixels[:1]).all()
    return patches[:, 0], pixels[0]


def follow(weights, patches, pixels):
    """Weights that make of shuffled images what the given ones make of the images themselves."""
    n, moved = GRID**2, {}
    for name, weight in weights.items():
        if name == "stem.proj.weight":
            weight = weight.flatten(-2)[..., pixels].view_as(weight)
        elif ".mix_tokens." in name:
            # The dimensions of N positions: rows, columns and bias of A, and what an MLP over
            # positions reads and writes. No other size of the model is N.
            for dim in range(weight.dim()):
                if weight.size(dim) == n:
                    weight = weight.index_select(dim, patches)
        moved[name] = weight
    return moved


def test_a_shuffle_gives_every_pixel_one_place_and_keeps_patches_together(shuffled):
    for kind in ("none", "patches", "pixels"):
        order = shuffled.draw_order(kind, SIDE, PATCH, seed=1)
        assert order.sort()[0].equal(torch.arange(SIDE**2))
        assert order.equal(shuffled.draw_order(kind, SIDE, PATCH, seed=1))
        assert order.equal(torch.arange(SIDE**2)) == (kind == "none")
        images = torch.arange(2 * 3 * SIDE**2).view(2, 3, SIDE, SIDE)
        found = shuffled.shuffle(images, order)
        for place, source in enumerate(order.tolist()):
            pixel = images[..., source // SIDE, source % SIDE]
            assert found[..., place // SIDE, place % SIDE].equal(pixel)
    patches, pixels = find_moves(shuffled.draw_order("patches", SIDE, PATCH, seed=1))
    assert not patches.equal(torch.arange(GRID**2)) and not pixels.equal(torch.arange(PATCH**2))
    assert not shuffled.draw_order("pixels", SIDE, PATCH, seed=2).equal(
        shuffled.draw_order("pixels", SIDE, PATCH, seed=1)
    )
    with pytest.raises(UserError, match="--shuffle-patch"):
        shuffled.draw_order("patches", SIDE, 5, seed=1)


class SharedAdaFC(AdaFC):
    """AdaFC with weights of its own, far from equal as after a training."""

    def __init__(self):
        super().__init__(C)
        self.shared = AxisWeights(C, (GRID, GRID), frozen=False)
        with torch.no_grad():
            for weight in self.shared.parameters():
                weight.mul_(20)

    def forward(self, x):
        return super().forward(x, *self.shared())


def with_mixer(build_mixer):
    """A ResMLP whose mixers are those of a family with stages, on the same patches."""
    model = build("resmlp_s12")
    for block in model.stages[0].blocks:
        block.mix_tokens = GridConvolution(GRID, build_mixer(), nn.Identity())
    return model


def build_cycle():
    return nn.Sequential(MoveChannels(1, 3), CycleMLP(C), MoveChannels(3, 1))


MODELS = {
    "ResMLP": lambda: build("resmlp_s12"),
    "MLP": lambda: build("resmlp_s12", token_mixer="mlp"),
    "Mixer": lambda: build("mixer_s16", token_ffn_embed_dim=10),
    "gMixer": lambda: build("gmixer_24", token_ffn_embed_dim=10),
    "gMLP": lambda: build("gmlp_ti16"),
    "no mixing": lambda: build("resmlp_s12", token_mixer="none"),
    "convolution": lambda: build("resmlp_s12", token_mixer="depthwise3x3"),
    "linear layer": lambda: with_mixer(lambda: nn.Conv2d(C, C, 1)),
    "pooling": lambda: with_mixer(Pooling),
    "AdaFC": lambda: with_mixer(SharedAdaFC),
    "cycle": lambda: with_mixer(build_cycle),
    "shift": lambda: build("s2mlp_deep"),
    "ResNet": lambda: build("resnet_cifar"),
}
KNOW_NEIGHBOURS = ("convolution", "pooling", "AdaFC", "cycle", "shift", "ResNet")


@pytest.mark.parametrize("name", MODELS)
def test_a_learned_matrix_over_patches_does_not_know_which_ones_are_neighbours(
    name, shuffled, randomised
):
    """Figure 4 of MLP-Mixer, without training."""
    model = randomised(MODELS[name]()).eval()
    images = torch.randn(2, 3, SIDE, SIDE, dtype=torch.float64)
    order = shuffled.draw_order("patches", SIDE, PATCH, seed=1)
    logits = model(images)
    model.load_state_dict(follow(model.state_dict(), *find_moves(order)))
    found = model(shuffled.shuffle(images, order))
    if name in KNOW_NEIGHBOURS:
        assert (found - logits).norm() > 1e-3 * logits.norm()
    else:
        assert_close(found, logits)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """study(script, *flags): the lines that a study of few small images says."""
    monkeypatch.setenv("PATH", str(find_commands()), prepend=":")
    draw_pictures(tmp_path / "images", {"train": 5, "val": 2})

    def study(script, *flags):
        command = ["python", CIFAR10 / script, "--data", tmp_path / "images", *flags]
        command += ["--work", tmp_path / "runs"]
        return run(*command, env={"PATH": os.environ["PATH"]}).stdout.splitlines()

    return study


def read_rows(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_runs_leave_curves_and_are_not_begun_again(tmp_path, study):
    flags = ["--updates", 4, "--results", tmp_path / "curves.csv", "--images", "pixels"]
    assert study("mixers.py", *flags, "--models", "resnet") == ["resnet pixels 1"]
    assert study("mixers.py", *flags, "--models", "resnet", "gmlp") == []
    rows = read_rows(tmp_path / "curves.csv")
    assert [int(row["updates"]) for row in rows] == [1, 2, 3, 4]
    assert rows[0].keys() == read_rows(CIFAR10 / "mixers.csv")[0].keys()


def test_a_run_takes_one_gpu_and_makes_all_updates(shuffled, tmp_path, monkeypatch, capsys):
    import runs

    def note(words, output):
        with open(output, "a") as stream:
            stream.write(f"shared model params: 5\n{' '.join(words)}\n")
        (tmp_path / "train.log").write_text('{"valid_top1": "1", "valid_num_updates": "2"}')

    monkeypatch.setattr(runs, "_train", note)
    # Stopped by a signal, a training ends with status 0 too.
    assert runs.train(["images", "SIGTERM: saving and stopping"], tmp_path) is None
    assert "goes on" in capsys.readouterr().err
    assert runs.train(["images", "--seed", 3], tmp_path) == runs.Run(5, {2: 1.0})
    assert (tmp_path / "output").read_text().endswith("--seed 3 --distributed-world-size 1\n")


def test_a_study_of_residual_networks_leaves_rows_and_a_plot(tmp_path, study):
    flags = ["--images", 40, "--seeds", 1, "--batches", 4, "--forms", "original"]
    for said in (["original 4 1"], []):
        assert study("residual.py", "preactivation", *flags, "--folder", tmp_path) == said
    (row,) = read_rows(tmp_path / "preactivation.csv")
    assert (row["images"], row["published"], row["seed"]) == ("40", "", "1")
    assert (tmp_path / "preactivation.png").stat().st_size > 5000


def test_few_images_leave_a_row_for_each_start(tmp_path, study):
    flags = ["--models", "resmlp", "--counts", 2, "--draws", 1, "--pretraining-updates", 3]
    both = ["resmlp pre-trained 2 1", "resmlp pre-training", "resmlp nothing 2 1"]
    for said in (both, []):
        assert study("few.py", *flags, "--supports", "1,2,3,4,5", "--folder", tmp_path) == said
    rows = [(r["start"], r["images"], r["updates"]) for r in read_rows(tmp_path / "few.csv")]
    assert rows == [("pre-trained", "2", "5"), ("nothing", "2", "5")]
    drawn = [list((tmp_path / "runs/images").glob(f"{n}/train/*/*.png")) for n in ("few*", "pre*")]
    classes = [{picture.parent.name for picture in pictures} for pictures in drawn]
    assert classes[0].isdisjoint(classes[1]) and len(drawn[0]) == 2 * len(classes[0])
    assert (tmp_path / "few.png").stat().st_size > 5000


def test_the_orders_of_a_unit_are_those_of_the_paper(monkeypatch):
    """Figure 4 of arXiv 1603.05027, at a stage's first unit and at another."""
    monkeypatch.syspath_prepend(str(CIFAR10))
    from units import ORDERS, Unit

    for order, (channels, stride) in itertools.product(ORDERS, ((4, 2), (8, 1))):
        unit = Unit(order, channels, 8, stride).eval()
        x = torch.randn(2, channels, 6, 6)
        kept = unit.shortcut(x)
        if order == "full":
            y = unit.conv_1(unit.norm_1(x).relu())
            expected = kept + unit.conv_2(unit.norm_2(y).relu())
        else:
            y = unit.conv_2(unit.norm_1(unit.conv_1(x)).relu())
            expected = {
                "original": (kept + unit.norm_2(y)).relu(),
                "norm_after": unit.norm_2(kept + y).relu(),
                "relu_before": kept + unit.norm_2(y).relu(),
            }[order]
        assert_close(unit(x), expected)
