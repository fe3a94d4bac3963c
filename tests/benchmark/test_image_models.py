"""The classifiers that are raced."""

import pytest

from resmlp_mt.benchmark.image_models import ModelCase


@pytest.mark.parametrize(
    "arch", ["mixer_s16 --layers 1 --embed-dim 8", "bit_r50x1 --layers 1,1 --embed-dim 128,128"]
)
def test_random_weights_tell_images_apart(arch):
    """Also where trainings begin with a head of zeros: else a wrong export would show no error."""
    model = ModelCase(arch, image_size=32, num_classes=3)
    first, second = model.build()(model.draw_images(2).float() / 255)
    assert (first - second).abs().max() > 1e-4
