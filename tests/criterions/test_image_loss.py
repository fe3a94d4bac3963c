import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from torch import nn
from torch.testing import assert_close

from resmlp_mt.criterions.image_classification import ImageClassificationCriterion, count_hits

B, K = 6, 9


class Fixed(nn.Module):
    """A model whose logits are its weights."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(B, K, dtype=torch.float32))

    def forward(self, images):
        return self.logits


def build(smoothing=0.0, alpha=0.5):
    return ImageClassificationCriterion(SimpleNamespace(), smoothing, alpha)


def sample(**more):
    return {"net_input": {"images": None}, "target": torch.randint(K, (B,)), **more}


def cross_entropy(logits, shares):
    """-sum over classes of the share times the log of the probability, in plain numbers."""
    total = 0.0
    for row, share in zip(logits.tolist(), shares.tolist(), strict=True):
        normaliser = math.log(sum(math.exp(z) for z in row))
        total -= sum(p * (z - normaliser) for p, z in zip(share, row, strict=True))
    return total


def one_hot(target):
    return torch.eye(K)[target]


def test_without_smoothing_it_is_the_negative_log_likelihood():
    model, batch = Fixed(), sample()
    loss, size, log = build()(model, batch)
    assert size == B
    assert_close(loss.item(), cross_entropy(model.logits, one_hot(batch["target"])))
    assert_close(log["loss"], loss.detach())


def test_smoothing_spreads_its_share_over_all_classes_in_training_alone():
    model, batch = Fixed(), sample()
    shares = 0.8 * one_hot(batch["target"]) + 0.2 / K
    assert_close(build(0.2)(model, batch)[0].item(), cross_entropy(model.logits, shares))
    plain = cross_entropy(model.logits, one_hot(batch["target"]))
    assert_close(build(0.2)(model.eval(), batch)[0].item(), plain)


def test_mixed_targets_count_by_their_share():
    model, shares = Fixed(), torch.rand(B, K).softmax(1)
    loss = build(0.1)(model, sample(soft_target=shares))[0]
    assert_close(loss.item(), cross_entropy(model.logits, 0.9 * shares + 0.1 / K))


def test_hard_distillation_is_the_weighted_sum_of_both_losses():
    model, batch = Fixed(), sample(teacher_target=torch.randint(K, (B,)))
    own = cross_entropy(model.logits, 0.9 * one_hot(batch["target"]) + 0.1 / K)
    taught = cross_entropy(model.logits, one_hot(batch["teacher_target"]))
    loss = build(0.1, alpha=0.3)(model, batch)[0]
    assert_close(loss.item(), 0.7 * own + 0.3 * taught)


def test_the_sum_of_the_unreduced_losses_is_the_reduced_one():
    model, batch = Fixed(), sample()
    unreduced = build()(model, batch, reduce=False)[0]
    assert unreduced.shape == (B,)
    assert_close(unreduced.sum(), build()(model, batch)[0])


def test_hits_are_counted_among_the_best_guesses():
    logits = torch.tensor([[9.0, 8, 7, 6, 5, 4], [4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4]])
    hits = count_hits(logits, torch.tensor([0, 1, 5]))
    assert {name: int(count) for name, count in hits.items()} == {"top1": 1, "top5": 2}
    few = count_hits(logits[:, :3], torch.tensor([0, 0, 2]))
    assert {name: int(count) for name, count in few.items()} == {"top1": 1, "top5": 3}


def test_metrics_are_means_over_images_and_percentages():
    logs = [
        {"loss": torch.tensor(6.0), "sample_size": 4, "top1": torch.tensor(1), "top5": 3},
        {"loss": torch.tensor(4.0), "sample_size": 1, "top1": torch.tensor(1), "top5": 1},
    ]
    with metrics.aggregate(new_root=True) as logged:
        ImageClassificationCriterion.reduce_metrics(logs)
    values = logged.get_smoothed_values()
    assert {name: float(values[name]) for name in ("loss", "top1", "top5")} == {
        "loss": 2.0,
        "top1": 40.0,
        "top5": 80.0,
    }


@pytest.mark.parametrize("flags", [dict(smoothing=1.0), dict(smoothing=-0.1), dict(alpha=1.1)])
def test_shares_out_of_range_are_refused(flags):
    with pytest.raises(ValueError, match="must be in"):
        build(**flags)
