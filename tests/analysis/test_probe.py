import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from resmlp_mt.analysis.probe import (
    PENALTIES,
    Features,
    check_neighbours,
    fit_linear,
    knn_accuracy,
    linear_accuracy,
    vote,
)
from resmlp_mt.errors import UserError

N, M, C, K = 40, 13, 6, 3


def features(count, spread=1.0):
    """Vectors around a mean for each class."""
    means = 3 * torch.eye(K, C)
    targets = torch.arange(count) % K
    return Features(means[targets] + spread * torch.randn(count, C), targets, ["a", "b", "c"])


def naive_vote(query, values, targets, k, temperature):
    cosines = [
        float(query @ value) / math.sqrt(float(query @ query) * float(value @ value))
        for value in values
    ]
    nearest = sorted(range(len(values)), key=lambda i: -cosines[i])[:k]
    votes = [0.0] * K
    for i in nearest:
        votes[int(targets[i])] += math.exp(cosines[i] / temperature)
    return votes.index(max(votes))


@pytest.mark.parametrize("k", [1, 5, N])
@pytest.mark.parametrize("temperature", [0.07, 1.0])
def test_votes_are_those_of_a_loop(k, temperature):
    train, valid = features(N, 2.0), features(M, 2.0)
    expected = [naive_vote(x, train.values, train.targets, k, temperature) for x in valid.values]
    normal = [F.normalize(x.values, dim=1) for x in (valid, train)]
    assert vote(*normal, train.targets, K, k, temperature).tolist() == expected
    hits = sum(e == t for e, t in zip(expected, valid.targets.tolist(), strict=True))
    accuracy = knn_accuracy(train, valid, k, temperature)
    assert accuracy == pytest.approx(100 * hits / M)


def test_the_length_of_vectors_does_not_matter_to_knn():
    train, valid = features(N, 2.0), features(M, 2.0)
    longer = Features(train.values * torch.rand(N, 1) * 9, train.targets, train.classes)
    assert knn_accuracy(longer, valid, 5, 0.07) == knn_accuracy(train, valid, 5, 0.07)


def test_the_lowest_temperature_leaves_the_nearest_alone():
    train, valid = features(N, 2.0), features(M, 2.0)
    assert knn_accuracy(train, valid, 20, 1e-6) == knn_accuracy(train, valid, 1, 0.07)


def test_more_images_than_fit_a_part_are_all_voted_on():
    train, valid = features(N, 0.1), features(300, 0.1)
    assert knn_accuracy(train, valid, 5, 0.07) == 100


@pytest.mark.parametrize(
    ("k", "temperature", "said"),
    [(0, 0.07, "--knn must be"), (N + 1, 0.07, f"1 to the {N} training"), (5, 0, "--temperature")],
)
def test_impossible_neighbours_are_refused(k, temperature, said):
    with pytest.raises(UserError, match=said):
        check_neighbours(k, temperature, N)


def test_a_linear_classifier_separates_what_is_separable_whatever_the_scale():
    # One channel is large and one does not vary: without standardising neither would do.
    train, valid = features(200, 0.1), features(M, 0.1)
    for part in (train, valid):
        part.values[:, 0] = part.values[:, 0] * 1e4 + 1e6
        part.values[:, 5] = 7.0
    accuracy, penalty = linear_accuracy(train, valid)
    assert accuracy == 100 and penalty in PENALTIES


def test_the_validation_images_do_not_influence_the_classifier():
    train, valid = features(60, 2.0), features(M, 2.0)
    other = Features(100 * torch.randn(M, C), valid.targets, valid.classes)
    assert linear_accuracy(train, valid)[1] == linear_accuracy(train, other)[1]


@pytest.mark.parametrize("penalty", [1e-1, 1e-3])
def test_the_fit_is_where_the_gradient_of_the_regularised_loss_vanishes(penalty):
    train = features(90, 2.0)
    layer = fit_linear(train.values, train.targets, K, penalty)
    p = (train.values @ layer.weight.t() + layer.bias).softmax(1)
    fault = (p - torch.eye(K)[train.targets]) / 90
    assert_close(
        fault.t() @ train.values + penalty * layer.weight, torch.zeros(K, C), atol=1e-3, rtol=0
    )
    assert_close(fault.sum(0), torch.zeros(K), atol=1e-3, rtol=0)


def test_one_training_image_is_too_few_for_a_linear_classifier():
    with pytest.raises(UserError, match="two training images"):
        linear_accuracy(features(1), features(M))
