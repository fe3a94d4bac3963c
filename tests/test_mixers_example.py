"""examples/cifar10: its shuffled images, and the study of all mixers."""

import csv
import itertools
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import run
from cli.pictures import draw_pictures
from torch.testing import assert_close

from resmlp_mt.errors import UserError

CIFAR10 = Path(__file__).parents[1] / "examples" / "cifar10"
GRID, PATCH = 3, 4
SIDE = GRID * PATCH


@pytest.fixture(scope="module")
def shuffled():
    """The plugin of the example."""
    sys.path.insert(0, str(CIFAR10))
    import shuffled

    yield shuffled
    sys.path.remove(str(CIFAR10))


def find_moves(order):
    """The patch that each patch of a shuffled image is, and the pixel that each pixel in it is."""
    sources = order.view(GRID, PATCH, GRID, PATCH).transpose(1, 2).reshape(GRID**2, PATCH**2)
    rows, columns = sources // SIDE, sources % SIDE
    patches = rows // PATCH * GRID + columns // PATCH
    pixels = rows % PATCH * PATCH + columns % PATCH
    assert (patches == patches[:, :1]).all() and (pixels == pixels[:1]).all()
    return patches[:, 0], pixels[0]


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


@pytest.fixture
def study(tmp_path):
    """study(script, *flags): the lines that a study of few small images says."""
    draw_pictures(tmp_path / "images", {"train": 5, "val": 2})

    def study(script, *flags):
        command = ["python", CIFAR10 / script, "--data", tmp_path / "images", *flags]
        return run(*command, "--work", tmp_path / "runs").stdout.splitlines()

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
