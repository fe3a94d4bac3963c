"""BiT's HyperRule: its schedule, and what it chooses for the data."""

from types import SimpleNamespace

import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.optim.hyperrule import HyperRuleConfig, HyperRuleSchedule
from resmlp_mt.tasks.hyperrule import choose_rule


class Optimizer:
    def set_lr(self, rate):
        self.rate = rate

    def get_lr(self):
        return self.rate


def build(supports):
    cfg = HyperRuleConfig(supports=supports, lr=[0.003])
    optimizer = Optimizer()
    scheduler = HyperRuleSchedule.__new__(HyperRuleSchedule)
    scheduler.cfg, scheduler.optimizer = cfg, optimizer
    return scheduler


@pytest.mark.parametrize("images", [19_999, 20_000, 499_999, 500_000])
def test_the_rate_of_each_update_is_that_of_the_released_code(images):
    rule = choose_rule(images, 32 * 32, "code")
    supports, scheduler = list(rule.supports), build(list(rule.supports))
    for update in range(0, supports[-1], 7):
        rate = 0.003 * update / supports[0] if update < supports[0] else 0.003
        for support in supports[1:]:
            if support < update:
                rate /= 10
        assert scheduler.step_update(update) == pytest.approx(rate)
        assert scheduler.step_begin_epoch(2) == scheduler.optimizer.rate


# Images and area: size, square, crop, supports and mixup in the paper, and in its code.
CHOICES = {
    (19_999, 95 * 96): (("small", 160, 128, (100, 150, 300, 450, 500), 0.0), (160, 128, 200)),
    (50_000, 32 * 32): (("medium", 160, 128, (500, 3000, 6000, 9000, 10_000), 0.1), (160, 128)),
    (20_000, 96 * 96): (("medium", 448, 384, (500, 3000, 6000, 9000, 10_000), 0.1), (512, 480)),
    (500_000, 10**6): (("large", 448, 384, (500, 6000, 12_000, 18_000, 20_000), 0.1), (512, 480)),
}


@pytest.mark.parametrize("data", CHOICES)
def test_the_rule_chooses_as_published(data):
    paper, code = CHOICES[data]
    rule = choose_rule(*data)
    assert (rule.size, rule.resize, rule.crop, rule.supports, rule.mixup) == paper
    other = choose_rule(*data, "code")
    assert (other.resize, other.crop, *other.supports[1:2][: len(code) - 2]) == code
    assert other.mixup == rule.mixup and other.supports[-1] == rule.supports[-1]


@pytest.mark.parametrize("supports", [[500], [0, 100], [100, 100], [300, 200]])
def test_supports_that_do_not_rise_are_refused(supports):
    with pytest.raises(UserError, match="--supports .* each above the last"):
        HyperRuleSchedule(SimpleNamespace(supports=supports, lr=[0.1]), build_fairseq_optimizer())


def build_fairseq_optimizer():
    import torch
    from fairseq.optim.sgd import SGD

    weights = [torch.nn.Parameter(torch.zeros(1))]
    return SGD(SimpleNamespace(lr=[0.1], momentum=0.0, weight_decay=0.0), weights)
