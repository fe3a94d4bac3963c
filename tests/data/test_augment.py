import math
import re

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from resmlp_mt.data.augment import Augment, AugmentPicture, Normalise
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.augmentation import RecipeConfig

B, K, SIDE = 32, 5, 16
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
NOTHING = dict(hflip=0.0, color_jitter=0.0)


def augment(mean=MEAN, std=STD, **flags):
    cfg = RecipeConfig(**NOTHING | flags)
    return Augment(cfg, mean, std, K)


def batch(seed=0, in_chans=3):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(256, (B, in_chans, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    return images, torch.arange(B) % K


def plain(images):
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return (images / 255 - mean) / std


def differing(y, x):
    """Which images of the batch are not the same."""
    return (y - x).abs().amax((1, 2, 3)) > 1e-4


def test_with_everything_off_images_are_only_normalised():
    images, target = batch()
    y, shares = augment()(images, target)
    assert_close(y, plain(images))
    assert_close(Normalise(MEAN, STD)(images), plain(images))
    assert_close(shares, torch.eye(K)[target])


def test_erased_rectangles_are_noise_or_the_mean_colour_at_the_rate_asked_for():
    images, target = batch()
    for mode in ("pixel", "const"):
        y, _ = augment(reprob=0.5, remode=mode)(images, target)
        changed = differing(y, plain(images))
        assert 4 < changed.sum() < B - 4
        for new, old in zip(y[changed], plain(images)[changed], strict=True):
            erased = ((new - old).abs() > 1e-4).any(0)
            rows, columns = erased.any(1).nonzero(), erased.any(0).nonzero()
            area = (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1)
            assert erased.sum() > 0.9 * area  # a rectangle, but for pixels equal by chance
            assert area <= SIDE * SIDE / 2
            if mode == "const":
                assert not new[:, erased].any()


def test_mixup_adds_shares_of_two_images_and_of_their_classes():
    images, target = batch()
    x, labels = plain(images), torch.eye(K)[target]
    y, shares = augment(mixup=0.8)(images, target)
    # With whom: the mirror place. How much: what explains the first pixel.
    share = ((y - x.flip(0)) / (x - x.flip(0)))[0, 0, 0, 0]
    assert 0 <= share <= 1
    assert_close(y, share * x + (1 - share) * x.flip(0), atol=1e-5, rtol=0)
    assert_close(shares, share * labels + (1 - share) * labels.flip(0), atol=1e-5, rtol=0)


def test_cutmix_pastes_a_rectangle_and_shares_classes_by_its_area():
    images, target = batch()
    x, labels = plain(images), torch.eye(K)[target]
    odd = 0  # the longest side of that kind
    for seed in range(60):
        torch.manual_seed(seed)
        y, shares = augment(cutmix=1.0)(images, target)
        pasted = ((y - x.flip(0)).abs() < 1e-5).all(1).all(0)
        assert torch.equal(((y - x).abs() < 1e-5).all(1).all(0), ~pasted)
        share = 1 - pasted.float().mean()
        assert_close(shares, share * labels + (1 - share) * labels.flip(0))
        height, width = int(pasted.any(1).sum()), int(pasted.any(0).sum())
        assert int(pasted.sum()) == height * width
        # Where the edges of the images do not cut it, it is a square, of odd sides too.
        inside = not (pasted[[0, -1]].any() or pasted[:, [0, -1]].any())
        odd = max(odd, height % 2 * height * inside)
        assert not inside or height == width
    assert odd > 1


def test_the_share_of_mixup_follows_a_beta_distribution():
    images, target = (
        torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1),
        torch.tensor([0, 1]),
    )
    mix = augment([0.0], [1.0], mixup=0.5)
    shares = torch.tensor([mix(images, target)[1][0, 0].item() for _ in range(4000)])
    # Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)); five standard errors and a bit.
    assert abs(shares.mean() - 0.5) < 0.03
    assert abs(shares.var() - 1 / 8) < 0.01


def test_colours_change_every_image_but_not_grey_ones():
    images, target = batch()
    y, _ = augment(color_jitter=0.4)(images, target)
    assert differing(y, plain(images)).all()
    grey, _ = batch(in_chans=1)
    y, _ = augment([0.5], [0.25], color_jitter=0.4)(grey, target)
    assert_close(y, (grey / 255 - 0.5) / 0.25)


@pytest.mark.parametrize("notation", ["rand-m9-p1-inc1", "original-mstd0.5"])
def test_a_policy_takes_the_place_of_the_jitter(notation):
    images, target = batch()
    y, _ = augment(aa=notation, color_jitter=0.4)(images, target)
    assert_close(y, plain(images))
    pictures = AugmentPicture(RecipeConfig(aa=notation), MEAN, "bicubic")
    image, draw = Image.fromarray(images[0].permute(1, 2, 0).numpy()), np.random.default_rng(1)
    assert sum(pictures(image, draw) != image for _ in range(20)) > 15


@pytest.mark.parametrize(
    "notation",
    """augmix v0 original-m9 original-mstd original-mstdx rand-m99 rand-m11 rand-m9-n0
    rand-m9-n1.5 rand-m9-w0 rand-m9-inc2 rand-m9-p2
    rand-m9-mmax20 rand-m9-tweights rand-m9- rand-m9-mstdx""".split(),
)
def test_other_notations_are_refused(notation):
    with pytest.raises(UserError, match=f"--aa {notation}: "):
        AugmentPicture(RecipeConfig(aa=notation), MEAN, "bicubic")


@pytest.mark.parametrize(
    "flags",
    [
        dict(hflip=1.5),
        dict(reprob=-0.1),
        dict(mixup_prob=2.0),
        dict(mixup=-1.0),
        dict(color_jitter=-0.4),
        dict(color_jitter=math.inf),
        dict(mixup=math.nan),
        dict(mixup=1e300),  # infinite in fp32
        dict(mixup=1e-300),
        dict(cutmix=0.0099),
    ],
    ids=str,
)
def test_flags_out_of_range_are_refused_by_name(flags):
    ((name, value),) = flags.items()
    with pytest.raises(UserError, match=f"--{name.replace('_', '-')} .*{re.escape(str(value))}"):
        augment(**flags)
