import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.data.augment import Augment, AugmentConfig, Normalise
from resmlp_mt.errors import UserError

B, K, SIDE = 32, 5, 16
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
NOTHING = dict(hflip=0.0, color_jitter=0.0)


def augment(mean=MEAN, std=STD, **flags):
    cfg = AugmentConfig(**NOTHING | flags)
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


def test_flips_mirror_some_images_and_leave_the_others():
    images, target = batch()
    y, _ = augment(hflip=0.5)(images, target)
    mirrored = ~differing(y, plain(images.flip(3)))
    assert torch.equal(~mirrored, ~differing(y, plain(images)))
    assert 4 < mirrored.sum() < B - 4


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
    for seed in range(20):
        torch.manual_seed(seed)
        y, shares = augment(cutmix=1.0)(images, target)
        pasted = ((y - x.flip(0)).abs() < 1e-5).all(1).all(0)
        assert torch.equal(((y - x).abs() < 1e-5).all(1).all(0), ~pasted)
        share = 1 - pasted.float().mean()
        assert_close(shares, share * labels + (1 - share) * labels.flip(0))


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


def test_mixing_is_chosen_for_a_batch_by_its_probabilities():
    images, target = batch()
    x = plain(images)
    mix = augment(mixup=0.8, cutmix=1.0, mixup_prob=0.6, mixup_switch_prob=0.3)
    counts = {"none": 0, "cutmix": 0, "mixup": 0}
    for _ in range(400):
        y, _ = mix(images, target)
        same = ((y - x).abs() < 1e-5).float().mean()
        other = ((y - x.flip(0)).abs() < 1e-5).float().mean()
        counts["none" if same == 1 else "cutmix" if same + other > 0.99 else "mixup"] += 1
    assert abs(counts["none"] / 400 - 0.4) < 0.12
    assert abs(counts["cutmix"] / (400 - counts["none"]) - 0.3) < 0.15


def test_colours_change_every_image_but_not_grey_ones():
    images, target = batch()
    y, _ = augment(color_jitter=0.4)(images, target)
    assert differing(y, plain(images)).all()
    grey, _ = batch(in_chans=1)
    y, _ = augment([0.5], [0.25], color_jitter=0.4)(grey, target)
    assert_close(y, (grey / 255 - 0.5) / 0.25)


def test_randaugment_changes_most_images_with_operations_of_its_own_for_each_group():
    images, target = batch()
    # The same image all over, so that the groups can be compared.
    images[:] = torch.linspace(50, 200, SIDE * SIDE).view(1, SIDE, SIDE)
    policy = augment(aa="rand-m9-mstd0.5-inc1", color_jitter=0.4)
    draws = [policy(images, target)[0] for _ in range(10)]
    assert torch.stack([differing(y, plain(images)) for y in draws]).float().mean() > 0.8
    assert sum(not torch.allclose(y[:16], y[16:]) for y in draws) > 7
    low, high = plain(torch.zeros(1, 3, 1, 1)), plain(torch.full((1, 3, 1, 1), 255.0))
    assert all((y >= low - 1e-4).all() and (y <= high + 1e-4).all() for y in draws)


def test_randaugment_grows_with_its_magnitude():
    images, target = batch()
    change = {}
    for magnitude in (1, 9):
        torch.manual_seed(0)
        policy = augment(aa=f"rand-m{magnitude}-n1")
        change[magnitude] = sum(
            (policy(images, target)[0] - plain(images)).abs().mean() for _ in range(40)
        )
    assert change[9] > change[1]


@pytest.mark.parametrize(
    "flags",
    [
        dict(aa="augmix"),
        dict(aa="rand-n2"),
        dict(aa="rand-m99"),
        dict(aa="rand-m9-n0"),
        dict(aa="rand-m9-w0"),
        dict(aa="rand-m9-inc0"),
        dict(hflip=1.5),
        dict(reprob=-0.1),
        dict(mixup_prob=2.0),
        dict(mixup=-1.0),
        dict(color_jitter=-0.4),
    ],
    ids=str,
)
def test_flags_out_of_range_are_refused_by_name(flags):
    (name,) = flags
    with pytest.raises(UserError, match=f"--{name.replace('_', '-')}"):
        augment(**flags)


def test_without_kornia_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "kornia.augmentation", None)
    monkeypatch.setitem(__import__("sys").modules, "kornia", None)
    with pytest.raises(UserError, match=r"pip install 'resmlp_mt\[image\]'"):
        augment()
