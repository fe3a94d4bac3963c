"""AutoAugment, against timm itself where it can be imported, and against the paper's table."""

import random
from collections import Counter

import numpy as np
import pytest
from data.test_randaugment import MEAN, change, picture

from resmlp_mt.data.autoaugment import AutoAugment

# Table 9 of arXiv 1805.09501: the first and the last of its 25 pairs.
FIRST = [("PosterizeOriginal", 0.4, 8), ("Rotate", 0.6, 9)]
LAST = [("Equalize", 0.8, 0), ("Equalize", 0.6, 0)]


def test_one_pair_is_drawn_for_each_picture_and_its_operations_by_chance():
    policy, draw, done = AutoAugment("original", MEAN, "bicubic"), np.random.default_rng(1), []
    assert len(policy.policy) == 25 and (policy.policy[0], policy.policy[-1]) == (FIRST, LAST)
    policy.operations.apply = lambda name, image, m, generator: done[-1].append((name, m)) or image
    for _ in range(20000):
        done.append([])
        policy(picture(), draw)
    expected = Counter()
    for pair in policy.policy:
        for name, probability, magnitude in pair:
            expected[name, magnitude] += probability / 25
    found = Counter(step for steps in done for step in steps)
    for step in expected | found:
        assert found[step] / 20000 == pytest.approx(expected[step], abs=0.01), step


def test_fewer_bits_are_kept_the_smaller_the_magnitude():
    operations = AutoAugment("original", MEAN, "bicubic").operations
    for magnitude, bits in ((0, 4), (5, 6), (8, 7), (10, 8)):
        draw = np.random.default_rng(1)
        kept = operations.apply("PosterizeOriginal", picture(), magnitude, draw)
        before = np.asarray(picture())
        assert (np.asarray(kept) == before - before % 2 ** (8 - bits)).all()


def test_pictures_change_as_with_timm(timm):
    from timm.data.auto_augment import AutoAugment as TimmsPolicy
    from timm.data.auto_augment import auto_augment_policy_original

    fill = tuple(round(255 * value) for value in MEAN)
    theirs = TimmsPolicy(auto_augment_policy_original(dict(img_mean=fill)))
    ours, draw = AutoAugment("original", MEAN, "random"), np.random.default_rng(1)
    table = [[(op.name, op.prob, op.magnitude) for op in pair] for pair in theirs.policy]
    strengthless = ("Equalize", "AutoContrast", "Invert")
    assert ours.policy == [
        [(name, p, 0 if name in strengthless else m) for name, p, m in pair] for pair in table
    ]
    random.seed(1)
    changes = [[change(ours(picture(), draw)), change(theirs(picture()))] for _ in range(2000)]
    means, errors = np.mean(changes, 0), np.std(changes, 0) / 2000**0.5
    assert means[0] == pytest.approx(means[1], abs=5 * np.hypot(*errors))
