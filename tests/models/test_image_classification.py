from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import nn
from torch.testing import assert_close

from resmlp_mt.models.image_classification import POOLINGS, ResMLPImageModel
from resmlp_mt.models.parts import GRID_MIXERS
from resmlp_mt.models.presets import IMAGE_PRESETS

# Section 3 of arXiv 2105.03404 and its table 3, to the last parameter, at 224 pixels and 1000
# classes; those of Class-MLP are printed as 17.7, 32.4 and 47.1 million.
PUBLISHED = {
    ("resmlp_s12",): 15_350_872,
    ("resmlp_s24",): 30_020_680,
    ("resmlp_s36",): 44_690_488,
    ("resmlp_b24",): 115_736_776,
    ("resmlp_b24_8",): 129_138_280,
    ("resmlp_s12", ("token_mixer", "none")): 14_887_528,
    ("resmlp_s12", ("token_mixer", "mlp")): 18_587_224,
    ("resmlp_s12", ("token_mixer", "conv3x3")): 30_817_384,
    ("resmlp_s12", ("token_mixer", "depthwise3x3")): 14_933_608,
    ("resmlp_s12", ("token_mixer", "separable3x3")): 16_707_688,
    ("resmlp_s12_14",): 15_607_912,
    ("resmlp_s12_8",): 22_051_624,
}
SMALL = dict(patch_size=4, embed_dim=12, layers=2)
K = 7


def build(preset="resmlp_s12", image_size=224, classes=1000, in_chans=3, **flags):
    cfg = SimpleNamespace(**flags)
    ARCH_CONFIG_REGISTRY[preset](cfg)
    task = SimpleNamespace(
        in_chans=in_chans, image_size=image_size, build_head=lambda dim: nn.Linear(dim, classes)
    )
    return ResMLPImageModel.build_model(cfg, task)


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def small(randomised, **flags):
    return randomised(build(image_size=12, classes=K, **SMALL | flags)).eval()


@pytest.mark.parametrize("what", PUBLISHED, ids=str)
def test_the_number_of_parameters_is_the_published_one(what):
    preset, *flags = what
    with torch.device("meta"):
        assert count(build(preset, **dict(flags))) == PUBLISHED[what]


@pytest.mark.parametrize(
    ("preset", "millions"), [("resmlp_s12", 17.7), ("resmlp_s24", 32.4), ("resmlp_s36", 47.1)]
)
def test_class_mlp_has_the_published_number_of_parameters(preset, millions):
    with torch.device("meta"):
        assert round(count(build(preset, pooling="class-mlp")) / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        (dict(layers=12), 0.1),
        (dict(layers=18), 0.1),
        (dict(layers=24), 1e-5),
        (dict(layers=36), 1e-6),
        (dict(layers=36, layer_scale_init=0.5), 0.5),
    ],
    ids=str,
)
def test_layer_scale_starts_by_depth_unless_told(flags, value):
    model = build(image_size=16, embed_dim=4, **flags)
    for block in model.stages[0].blocks:
        for scale in (block.scale_1, block.scale_2):
            assert (scale.gamma == torch.tensor(value)).all()


def test_b24_starts_as_released_and_not_by_its_depth():
    for preset in ("resmlp_b24", "resmlp_b24_8"):
        assert IMAGE_PRESETS[preset]["layer_scale_init"] == 1e-6


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("mixer", GRID_MIXERS)
def test_every_parameter_gets_a_gradient_and_a_batch_equals_its_singles(mixer, pooling, randomised):
    model = small(randomised, token_mixer=mixer, pooling=pooling)
    images = torch.randn(3, 3, 12, 12, dtype=torch.float64)
    logits = model(images)
    assert logits.shape == (3, K)
    assert_close(logits, torch.cat([model(image.unsqueeze(0)) for image in images]))
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_patches_do_not_communicate_without_a_mixer(randomised):
    model = small(randomised, token_mixer="none")
    images = torch.randn(1, 3, 12, 12, dtype=torch.float64)
    model.pool = nn.Identity()
    model.head = nn.Identity()
    before = model(images)
    images[..., :4, :4] += 1
    changed = (model(images) - before).abs().sum(2)[0] > 0
    assert changed.tolist() == [True] + 8 * [False]


def test_linear_layers_start_as_released():
    torch.manual_seed(0)
    model = build(image_size=64)
    for block in model.stages[0].blocks:
        for layer in (block.mix_channels.fc1, block.mix_channels.fc2):
            assert 0.0195 < layer.weight.std() < 0.0205
            assert not layer.bias.any()


def test_the_drop_path_rate_is_the_same_for_all_blocks():
    model = build(image_size=16, embed_dim=4, drop_path=0.3)
    assert {block.drop[1].rate for block in model.stages[0].blocks} == {0.3}


def test_grey_images_have_one_channel(randomised):
    model = randomised(build(image_size=8, in_chans=1, **SMALL))
    assert model(torch.randn(2, 1, 8, 8, dtype=torch.float64)).shape == (2, 1000)


@pytest.mark.parametrize(("image_size", "patch_size"), [(30, 4), (3, 4)])
def test_patches_that_do_not_divide_the_image_are_refused(image_size, patch_size):
    with pytest.raises(ValueError, match=f"{image_size} x {image_size}.*--image-size.*multiple"):
        build(image_size=image_size, patch_size=patch_size)


def test_patches_of_no_pixels_are_refused():
    with pytest.raises(ValueError, match="--patch-size must be at least 1, not 0"):
        build(image_size=16, patch_size=0)


def test_images_of_another_size_are_refused(randomised):
    with pytest.raises(ValueError, match="16 x 8 pixels.*12 x 12"):
        small(randomised)(torch.randn(1, 3, 16, 8, dtype=torch.float64))


def test_a_head_for_other_classes_starts_anew_with_a_message(randomised, caplog):
    old, new = small(randomised), build(image_size=12, classes=5, **SMALL).double()
    new.restarts_head = True
    head = {name: tensor.clone() for name, tensor in new.head.state_dict().items()}
    new.load_state_dict(old.state_dict())
    assert "head starts anew" in caplog.text
    assert_close(dict(new.head.state_dict()), head)
    assert_close(new.stages.state_dict(), old.stages.state_dict())


def test_a_state_that_fits_is_loaded_whole_and_without_a_message(randomised, caplog):
    old, new = small(randomised), build(image_size=12, classes=K, **SMALL).double()
    new.restarts_head = True
    new.load_state_dict(old.state_dict())
    assert_close(new.state_dict(), old.state_dict())
    assert not caplog.text


def test_weights_that_do_not_fit_are_listed(randomised):
    model = small(randomised)
    state = model.state_dict()
    state["stages.0.blocks.9.norm_1.alpha"] = state.pop("stages.0.blocks.0.norm_1.alpha")
    state["head.weight"] = state["head.weight"][:5]
    with pytest.raises(ValueError) as raised:
        model.load_state_dict(state)
    assert str(raised.value).splitlines()[1:] == [
        "  missing: stages.0.blocks.0.norm_1.alpha",
        "  unknown: stages.0.blocks.9.norm_1.alpha",
        "  of another shape: head.weight (5, 12) instead of (7, 12)",
    ]


def test_weights_of_another_image_size_are_refused_where_the_optimizer_goes_on(randomised):
    old, new = small(randomised), build(image_size=16, classes=K, **SMALL)
    new.resizes = False
    with pytest.raises(ValueError, match=r"blocks.0.mix_tokens.matrix.weight \(1, 9, 9\) instead"):
        new.load_state_dict(old.state_dict())


@pytest.mark.parametrize(
    "flags",
    [
        dict(embed_dim=0),
        dict(layers=0),
        dict(ffn_embed_dim=-4),
        dict(layer_scale_init=-1.0),
        dict(dropout=2.0),
    ],
    ids=str,
)
def test_impossible_sizes_are_refused_by_name(flags):
    (name,) = flags
    with pytest.raises(ValueError, match=f"--{name.replace('_', '-')}"):
        build(image_size=16, **flags)
