"""Families of image models: what all of them keep, and those of one stage from their equations.

Names, shapes and equations of published weights are written here from the papers and from timm.
"""

import copy
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import nn
from torch.testing import assert_close

from resmlp_mt.checkpoints.released import check_fit, from_format, measure, recognise, to_format
from resmlp_mt.errors import UserError
from resmlp_mt.models.presets import IMAGE_PRESETS
from resmlp_mt.nn.shift import shift

# At 224 pixels and 1000 classes, read off timm 1.0.31. H/14 is not in timm: MLP-Mixer's paper has
# it with 431M, counted without the head.
COUNTS = {
    "mixer_s32": 19_104_624,
    "mixer_s16": 18_528_264,
    "mixer_b32": 60_293_428,
    "mixer_b16": 59_880_472,
    "mixer_l32": 206_939_264,
    "mixer_l16": 208_196_168,
    "mixer_h14": 431_069_952 + 1280 * 1000 + 1000,
    "gmixer_24": 24_721_096,
    "gmlp_ti16": 5_867_328,
    "gmlp_s16": 19_422_656,
    "gmlp_b16": 73_075_392,
    # By its equations. The paper says 71M, which is the number without the head, and 51M.
    "s2mlp_wide": 72_241_384,
    "s2mlp_deep": 53_917_288,
    "poolformer_s12": 11_915_176,
    "poolformer_s24": 21_388_968,
    "poolformer_s36": 30_862_760,
    "poolformer_m36": 56_172_520,
    "poolformer_m48": 73_473_448,
    "bit_r50x1": 25_549_352,
    "bit_r50x3": 217_319_080,
    "bit_r101x1": 44_541_480,
    "bit_r101x3": 387_934_888,
    "bit_r152x2": 236_335_208,
    "bit_r152x4": 936_533_224,
    # The paper says 9M, 13M and 24M.
    "adafc_s": 9_426_856,
    "adafc_m": 13_128_616,
    "adafc_l": 23_785_384,
    "adafc_m_init": 13_128_616,
    # As its own code builds them; the paper says 15M, 27M, 38M, 52M and 76M.
    "cyclemlp_b1": 15_155_400,
    "cyclemlp_b2": 26_802_504,
    "cyclemlp_b3": 38_385_720,
    "cyclemlp_b4": 51_796_552,
    "cyclemlp_b5": 75_747_280,
}
# One preset of each model that is registered, and of each form of its blocks.
FLAT = ("resmlp_s12", "mixer_s16", "gmixer_24", "gmlp_ti16", "s2mlp_deep")
# Those of several stages: channels and blocks of each, where models are tiny.
PYRAMIDS = {
    "poolformer_s12": ([8, 12], [1, 2]),
    "adafc_s": ([8, 12], [1, 2]),
    "cyclemlp_b1": ([8, 12], [1, 2]),
    "bit_r50x1": ([128, 256], [1, 2]),
}
FAMILIES = (*FLAT, *PYRAMIDS)
# Those that timm has, and which parts it builds them of.
TIMM = {
    "mixer_s16": dict(),
    "gmixer_24": dict(mlp_layer="GluMlp", act_layer=nn.SiLU, mlp_ratio=(32.0, 4.0)),
    "gmlp_ti16": dict(block_layer="SpatialGatingBlock", mlp_layer="GatedMlp", mlp_ratio=6),
}
SIDE, PATCH, C, DEPTH, K = 3, 4, 12, 2, 5
N = SIDE**2
every_family = pytest.mark.parametrize("preset", FAMILIES)
every_published = pytest.mark.parametrize("preset", TIMM)


def build(preset, image_size=SIDE * PATCH, classes=K, task=None, **flags):
    cfg = SimpleNamespace(**flags)
    ARCH_CONFIG_REGISTRY[preset](cfg)
    head = lambda dim: nn.Linear(dim, classes)  # noqa: E731
    task = task or SimpleNamespace(in_chans=3, image_size=image_size, build_head=head)
    return ARCH_MODEL_REGISTRY[preset].build_model(cfg, task)


def sizes(preset, layers=DEPTH):
    """Flags that make a model tiny."""
    if preset in PYRAMIDS:
        return dict(zip(("embed_dim", "layers"), PYRAMIDS[preset], strict=True))
    return dict(patch_size=PATCH, embed_dim=C, layers=layers)


def tiny(preset, side=SIDE, **flags):
    return build(preset, **dict(image_size=side * PATCH) | sizes(preset) | flags)


def name_in_timm(preset):
    if preset.startswith("bit_r"):
        return f"resnetv2_{preset[5:]}_bit"
    return preset if preset.startswith("poolformer") else f"{preset}_224"


def test_every_image_model_is_tested_here():
    assert {ARCH_MODEL_REGISTRY[name] for name in IMAGE_PRESETS} == {
        ARCH_MODEL_REGISTRY[name] for name in FAMILIES
    }


@pytest.mark.parametrize("preset", COUNTS)
def test_the_number_of_parameters_is_that_of_the_paper_or_of_timm(preset):
    with torch.device("meta"):
        assert sum(p.numel() for p in build(preset, 224, 1000).parameters()) == COUNTS[preset]


@every_family
def test_activations_that_are_computed_again_change_no_gradient(preset, kept_by):
    images, flags = torch.randn(3, 3, SIDE * PATCH, SIDE * PATCH), dict(drop_path=0.5, dropout=0.1)
    plain, frugal = (tiny(preset, **flags, checkpoint_activations=again) for again in (False, True))
    frugal.load_state_dict(plain.state_dict())
    kept = [kept_by(model, lambda m: m(images)) for model in (plain, frugal)]
    assert kept[1] < kept[0] / 2
    for ours, theirs in zip(frugal.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


@every_family
def test_a_model_gives_numbers_from_the_start_and_trains_every_parameter(preset, randomised):
    images = torch.randn(3, 3, SIDE * PATCH, SIDE * PATCH)
    fresh = tiny(preset, drop_path=0.5, dropout=0.1)
    assert fresh(images).isfinite().all()
    model, images = randomised(fresh).eval(), images.double()
    logits = model(images)
    assert_close(logits, torch.cat([model(image[None]) for image in images]))
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    for dtype in (torch.bfloat16, torch.float16):
        near = copy.deepcopy(model).to(dtype)(images.to(dtype)).double()
        assert (near - logits).norm() / logits.norm() < 0.1


@every_family
def test_weights_load_for_another_image_size(preset, randomised):
    model, larger = randomised(tiny(preset)), tiny(preset, side=SIDE + 2).double()
    larger.load_state_dict(model.state_dict())
    assert larger(torch.randn(2, 3, 20, 20, dtype=torch.float64)).isfinite().all()


@every_family
def test_the_rate_of_drop_path_is_constant_or_rises_to_its_last(preset):
    layers = [2, 3] if preset in PYRAMIDS else 5
    for schedule, rates in (("constant", [0.2] * 5), ("linear", [0.0, 0.05, 0.1, 0.15, 0.2])):
        model = tiny(preset, layers=layers, drop_path=0.2, drop_path_schedule=schedule)
        blocks = [block for stage in model.stages for block in stage.blocks]
        assert [block.drop[1].rate for block in blocks] == pytest.approx(rates)


def norm(x, w, name, eps=1e-6):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(x, w, name):
    return x @ w[f"{name}.weight"].mT + w[f"{name}.bias"]


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def mlp(x, w, name):
    return linear(gelu(linear(x, w, f"{name}.fc1")), w, f"{name}.fc2")


def mixer_block(x, w):
    """Equation 1 of arXiv 2105.01601."""
    x = x + mlp(norm(x, w, "norm1").mT, w, "mlp_tokens").mT
    return x + mlp(norm(x, w, "norm2"), w, "mlp_channels")


def gated(x, w, name):
    u, v = linear(x, w, f"{name}.fc1").chunk(2, dim=-1)
    return linear(u * v * torch.sigmoid(v), w, f"{name}.fc2")


def gmixer_block(x, w):
    """The same, with the gates of timm's GluMlp."""
    x = x + gated(norm(x, w, "norm1").mT, w, "mlp_tokens").mT
    return x + gated(norm(x, w, "norm2"), w, "mlp_channels")


def gmlp_block(x, w):
    """Section 2 of arXiv 2105.08050, with the spatial gating unit of its equation 3."""
    u, v = gelu(linear(norm(x, w, "norm"), w, "mlp_channels.fc1")).split(3 * C, dim=-1)
    v = norm(v, w, "mlp_channels.gate.norm", eps=1e-5)
    v = w["mlp_channels.gate.proj.weight"] @ v + w["mlp_channels.gate.proj.bias"][:, None]
    return x + linear(u * v, w, "mlp_channels.fc2")


def linear_shapes(**layers):
    """name: (in, out)"""
    found = {}
    for name, (inputs, outputs) in layers.items():
        name = name.replace("__", ".")
        found |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
    return found


def norm_shapes(**norms):
    return {
        f"{name.replace('__', '.')}.{leaf}": (dim,)
        for name, dim in norms.items()
        for leaf in ("weight", "bias")
    }


BLOCKS = {"mixer_s16": mixer_block, "gmixer_24": gmixer_block, "gmlp_ti16": gmlp_block}
BLOCK_SHAPES = {
    "mixer_s16": norm_shapes(norm1=C, norm2=C)
    | linear_shapes(
        mlp_tokens__fc1=(N, C // 2),
        mlp_tokens__fc2=(C // 2, N),
        mlp_channels__fc1=(C, 4 * C),
        mlp_channels__fc2=(4 * C, C),
    ),
    "gmixer_24": norm_shapes(norm1=C, norm2=C)
    | linear_shapes(
        mlp_tokens__fc1=(N, 384),
        mlp_tokens__fc2=(192, N),
        mlp_channels__fc1=(C, 4 * C),
        mlp_channels__fc2=(2 * C, C),
    ),
    "gmlp_ti16": norm_shapes(norm=C, mlp_channels__gate__norm=3 * C)
    | linear_shapes(
        mlp_channels__fc1=(C, 6 * C),
        mlp_channels__gate__proj=(N, N),
        mlp_channels__fc2=(3 * C, C),
    ),
}


def random_weights(preset):
    """As timm names them."""
    shapes = {"stem.proj.weight": (C, 3, PATCH, PATCH), "stem.proj.bias": (C,)}
    for i in range(DEPTH):
        block = BLOCK_SHAPES[preset].items()
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block}
    shapes |= norm_shapes(norm=C) | linear_shapes(head=(C, K))
    return {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}


def forward(preset, w, images):
    """A model of timm's from its equations. (B, 3, H, W) -> (B, K)."""
    x = F.conv2d(images, w["stem.proj.weight"], w["stem.proj.bias"], stride=PATCH).flatten(2).mT
    for i in range(DEPTH):
        start = f"blocks.{i}."
        x = BLOCKS[preset](x, {n.removeprefix(start): t for n, t in w.items() if start in n})
    return linear(norm(x, w, "norm").mean(1), w, "head")


@every_published
def test_timms_weights_load_strictly_give_the_logits_of_the_equations_and_go_back(preset):
    weights, model = random_weights(preset), tiny(preset).double().eval()
    check_fit(weights, model)
    sizes = dict(positions=N, in_chans=3, layers=DEPTH, embed_dim=C, patch_size=PATCH)
    assert measure(weights) == sizes | dict(num_classes=K)
    ours, layout = from_format(weights)
    assert layout == "timm"
    model.load_state_dict(ours)
    images = torch.randn(2, 3, 12, 12, dtype=torch.float64)
    assert_close(model(images), forward(preset, weights, images))
    back = to_format(model.state_dict(), "timm")
    assert back.keys() == weights.keys() and all(back[n].equal(weights[n]) for n in back)


@every_published
def test_timms_own_models_give_the_same_logits(preset, timm, randomised):
    sizes = dict(img_size=12, patch_size=PATCH, num_blocks=DEPTH, embed_dim=C, num_classes=K)
    module = timm.models.mlp_mixer
    parts = {name: getattr(module, str(part), part) for name, part in TIMM[preset].items()}
    theirs = randomised(module.MlpMixer(**sizes, **parts)).eval()
    model = tiny(preset).double().eval()
    model.load_state_dict(from_format(theirs.state_dict())[0])
    images = torch.randn(2, 3, 12, 12, dtype=torch.float64)
    assert_close(model(images), theirs(images))


@pytest.mark.parametrize("preset", [n for n in COUNTS if n[0] in "mgpb" and n != "mixer_h14"])
def test_a_preset_takes_the_weights_of_timms_model_of_its_name_whole(preset, timm):
    with torch.device("meta"):
        theirs = timm.create_model(name_in_timm(preset)).state_dict()
        check_fit(theirs, build(preset, 224, 1000))


@every_published
def test_other_layouts_and_other_families_are_refused_in_words(preset):
    model = tiny(preset)
    with pytest.raises(UserError, match="official weights cannot hold .* the layout timm alone"):
        to_format(model.state_dict(), "official")
    weights = random_weights(preset)
    name = recognise(weights)[0].name
    for other in ("resmlp_s12", "s2mlp_deep"):
        said = (
            rf"timm {name} weights, but the model is of another family:\n  missing: .*\n  unknown: "
        )
        with pytest.raises(UserError, match=said):
            check_fit(weights, tiny(other))
    del weights["blocks.1.mlp_channels.fc1.bias"]
    with pytest.raises(UserError, match="missing: blocks.1.mlp_channels.fc1.bias"):
        check_fit(weights, model)


def test_a_mixer_starts_as_released():
    model = build("mixer_s16", 64, embed_dim=64, layers=2)
    assert not model.head.weight.any()
    for layer in (model.stages[0].blocks[0].mix_channels.fc2, model.stem.proj):
        inputs = layer.weight[0].numel()
        assert 0.95 < layer.weight.std() * inputs**0.5 < 1.05
        assert not layer.bias.any()


def test_gmlp_starts_with_a_gate_that_lets_each_patch_pass_by_itself():
    gate = tiny("gmlp_ti16").stages[0].blocks[0].mix_channels.gate
    x = torch.randn(2, N, 6 * C)
    assert 0 < gate.mix_tokens.matrix.weight.std() < 2e-6
    assert_close(gate(x), gelu(x[..., : 3 * C]), rtol=1e-4, atol=1e-4)


def test_gmixer_starts_with_open_gates():
    block = tiny("gmixer_24").stages[0].blocks[0]
    for part, width in ((block.mix_tokens, N), (block.mix_channels, C)):
        u, v = part.fc1(torch.randn(20, width)).chunk(2, dim=-1)
        assert_close(v, torch.ones_like(v), rtol=1e-4, atol=1e-4)
        assert u.std() > 0.5


def test_a_hidden_layer_that_has_no_halves_is_refused():
    with pytest.raises(UserError, match="must be even, not 7"):
        tiny("gmlp_ti16", ffn_embed_dim=7)
    with pytest.raises(UserError, match="must be even, not 9"):
        tiny("gmixer_24", token_ffn_embed_dim=9)
    with pytest.raises(UserError, match="--token-ffn-embed-dim must be at least 0"):
        tiny("mixer_s16", token_ffn_embed_dim=-2)


def shifted(x):
    """Section 3.2 of arXiv 2106.07477, value by value. (B, rows, columns, C)."""
    _, rows, columns, channels = x.shape
    y, steps = x.clone(), ((0, -1), (0, 1), (-1, 0), (1, 0))
    for r in range(rows):
        for s in range(columns):
            for c in range(channels):
                down, right = steps[4 * c // channels]
                if 0 <= r + down < rows and 0 <= s + right < columns:
                    y[:, r, s, c] = x[:, r + down, s + right, c]
    return y


@pytest.mark.parametrize("grid", [(3, 4), (1, 2), (1, 1)])
def test_a_shift_moves_each_group_by_one_patch_and_leaves_its_input(grid):
    x = torch.randn(2, *grid, 8)
    before = x.clone()
    assert shift(x).equal(shifted(x)) and x.equal(before)


def test_s2_mlp_follows_its_equations(randomised):
    model = randomised(tiny("s2mlp_deep")).eval()
    w, images = model.state_dict(), torch.randn(2, 3, 12, 12, dtype=torch.float64)
    x = F.conv2d(images, w["stem.proj.weight"], w["stem.proj.bias"], stride=PATCH).flatten(2).mT
    x = norm(x, w, "stem.norm", eps=1e-5)
    for i in range(DEPTH):
        at = f"stages.0.blocks.{i}."
        z = gelu(linear(norm(x, w, f"{at}norm_1", 1e-5), w, f"{at}mix_tokens.before"))
        z = shifted(z.unflatten(1, (SIDE, SIDE))).flatten(1, 2)
        x = x + linear(z, w, f"{at}mix_tokens.after")
        x = x + mlp(norm(x, w, f"{at}norm_2", 1e-5), w, f"{at}mix_channels")
    assert_close(model(images), linear(x.mean(1), w, "head"))


def test_s2_mlp_has_four_groups_and_no_published_weights():
    with pytest.raises(UserError, match="--embed-dim must be a multiple of 4"):
        build("s2mlp_deep", 16, embed_dim=6)
    with pytest.raises(UserError, match="it is none of ResMLP"):
        to_format(tiny("s2mlp_deep").state_dict(), "timm")
