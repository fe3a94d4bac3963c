"""BiT's HyperRule: its schedule, and what it chooses for the data."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.sgd import SGD
from PIL import Image

from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.data.pixels import BrokenImage
from resmlp_mt.errors import UserError
from resmlp_mt.optim.hyperrule import HyperRuleConfig, HyperRuleSchedule
from resmlp_mt.tasks.hyperrule import choose_rule, measure_images


def build(supports):
    weights = [torch.nn.Parameter(torch.zeros(1))]
    optimizer = SGD(SimpleNamespace(lr=[0.003], momentum=0.9, weight_decay=0.0), weights)
    return HyperRuleSchedule(HyperRuleConfig(supports=supports, lr=[0.003]), optimizer)


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
        assert scheduler.step_begin_epoch(2) == scheduler.optimizer.get_lr()


# Images and area: size, supports and Mixup, and square and crop in the paper and in its code.
CHOICES = {
    (19_999, 95 * 96): ("small", (100, 150, 300, 450, 500), 0.0, (160, 128), (160, 128)),
    (50_000, 32 * 32): ("medium", (500, 3000, 6000, 9000, 10_000), 0.1, (160, 128), (160, 128)),
    (20_000, 96 * 96): ("medium", (500, 3000, 6000, 9000, 10_000), 0.1, (448, 384), (512, 480)),
    (500_000, 10**6): ("large", (500, 6000, 12_000, 18_000, 20_000), 0.1, (448, 384), (512, 480)),
}


@pytest.mark.parametrize("data", CHOICES)
def test_the_rule_chooses_as_published(data):
    *same, paper, code = CHOICES[data]
    rule, other = choose_rule(*data), choose_rule(*data, "code")
    assert [rule.size, rule.supports, rule.mixup] == same
    assert ((rule.resize, rule.crop), (other.resize, other.crop)) == (paper, code)
    # The code divides the rate of small sets elsewhere.
    supports = (100, 200, 300, 400, 500) if rule.size == "small" else rule.supports
    assert (other.size, other.supports, other.mixup) == (rule.size, supports, rule.mixup)


def test_broken_images_are_not_measured(tmp_path):
    (tmp_path / "train" / "x").mkdir(parents=True)
    (tmp_path / "train/x/0.png").write_bytes(b"")
    with pytest.raises(BrokenImage, match="0.png: "):
        measure_images(ImageFolder(tmp_path, "train"))
    Image.new("RGB", (4, 3)).save(tmp_path / "train/x/1.png")
    assert measure_images(ImageFolder(tmp_path, "train")) == (4, 3)


@pytest.mark.parametrize("supports", [[500], [0, 100], [100, 100], [300, 200]])
def test_supports_that_do_not_rise_are_refused(supports):
    with pytest.raises(UserError, match="--supports .* each above the last"):
        build(supports)
