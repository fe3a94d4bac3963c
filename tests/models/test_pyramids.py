"""Families of image models with several stages, each from its equations once more.

Names, shapes and equations of published weights are written here from the papers and from timm.
"""

import functools
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from models.test_families import PYRAMIDS, K, build, gelu, linear, mlp, norm, tiny
from torch.testing import assert_close

from resmlp_mt.checkpoints.released import check_fit, from_format, measure, recognise, to_format
from resmlp_mt.checkpoints.weight_files import read_weights
from resmlp_mt.errors import UserError
from resmlp_mt.nn.cycle import COLUMNS, ROWS, stagger
from resmlp_mt.nn.map_mixers import AxisWeights

IMAGE = 14  # pixels a side, which 4 does not divide


def random_weights(model):
    """As timm names them, with values that no layer starts with."""
    weights = to_format(model.state_dict(), "timm")
    return {name: torch.randn(t.shape, dtype=torch.float64) for name, t in weights.items()}


def convolve(x, w, name, stride, padding):
    return F.conv2d(x, w[f"{name}.weight"], w.get(f"{name}.bias"), stride, padding)


def group_norm(x, w, name, groups=1, eps=1e-5):
    y = x.flatten(1).unflatten(1, (groups, -1))
    y = (y - y.mean(2, keepdim=True)) / (y.var(2, correction=0, keepdim=True) + eps).sqrt()
    return y.view_as(x) * w[f"{name}.weight"][:, None, None] + w[f"{name}.bias"][:, None, None]


def pointwise(x, w, name):
    """A convolution of size 1, as the linear layer that it is."""
    y = x.movedim(1, -1) @ w[f"{name}.weight"].flatten(1).mT + w[f"{name}.bias"]
    return y.movedim(-1, 1)


def neighbours(x):
    """The mean over those in a square of 3 x 3 that lie in the map."""
    y = torch.empty_like(x)
    for i in range(x.size(2)):
        for j in range(x.size(3)):
            near = x[:, :, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            y[:, :, i, j] = near.mean((2, 3))
    return y


def poolformer(w, images):
    """Equations 4 to 6 of arXiv 2111.11418; the stages of its figure 2; the head of timm."""
    x = convolve(images, w, "stem.conv", 4, 2)
    for stage, depth in enumerate(PYRAMIDS["poolformer_s12"][1]):
        if stage:
            x = convolve(x, w, f"stages.{stage}.downsample.conv", 2, 1)
        for i in range(depth):
            at = f"stages.{stage}.blocks.{i}."
            y = group_norm(x, w, f"{at}norm1")
            scales = (w[f"{at}layer_scale{n}.scale"][:, None, None] for n in (1, 2))
            x = x + next(scales) * (neighbours(y) - y)
            y = gelu(pointwise(group_norm(x, w, f"{at}norm2"), w, f"{at}mlp.fc1"))
            x = x + next(scales) * pointwise(y, w, f"{at}mlp.fc2")
    return linear(norm(x.mean((2, 3)), w, "head.norm"), w, "head.fc")


def standardised(x, w, name, stride, padding, eps=1e-8):
    kernel = w[f"{name}.weight"]
    flat = kernel.flatten(1)
    flat = (flat - flat.mean(1, keepdim=True)) / (
        flat.var(1, correction=0, keepdim=True) + eps
    ) ** 0.5
    return F.conv2d(x, flat.view_as(kernel), None, stride, padding)


def bit(w, images):
    """Section 3.1 of arXiv 1912.11370, on units of arXiv 1603.05027, figure 4 (e)."""

    def rectified(x, name):
        return group_norm(x, w, name, groups=32).clamp(min=0)

    x = F.pad(standardised(images, w, "stem.conv", 2, 3), (1, 1, 1, 1))
    x = x.unfold(2, 3, 2).unfold(3, 3, 2).amax((4, 5))
    for stage, depth in enumerate(PYRAMIDS["bit_r50x1"][1]):
        for i in range(depth):
            at = f"stages.{stage}.blocks.{i}."
            stride = 2 if stage and not i else 1
            y = rectified(x, f"{at}norm1")
            if not i:
                x = standardised(y, w, f"{at}downsample.conv", stride, 0)
            y = rectified(standardised(y, w, f"{at}conv1", 1, 0), f"{at}norm2")
            y = rectified(standardised(y, w, f"{at}conv2", stride, 1), f"{at}norm3")
            x = x + standardised(y, w, f"{at}conv3", 1, 0)
    x = rectified(x, "norm").mean((2, 3))
    return x @ w["head.fc.weight"][:, :, 0, 0].mT + w["head.fc.bias"]


EQUATIONS = {"poolformer_s12": poolformer, "bit_r50x1": bit}
every_published = pytest.mark.parametrize("preset", EQUATIONS)


@every_published
def test_timms_weights_load_strictly_give_the_logits_of_the_equations_and_go_back(preset):
    model = tiny(preset, image_size=IMAGE).double().eval()
    weights, (dims, layers) = random_weights(model), PYRAMIDS[preset]
    check_fit(weights, model)
    assert measure(weights) == dict(in_chans=3, layers=layers, embed_dim=dims, num_classes=K)
    ours, layout = from_format(weights)
    assert layout == "timm"
    model.load_state_dict(ours)
    images = torch.randn(2, 3, IMAGE, IMAGE, dtype=torch.float64)
    assert_close(model(images), EQUATIONS[preset](weights, images))
    back = to_format(model.state_dict(), "timm")
    assert back.keys() == weights.keys() and all(back[n].equal(weights[n]) for n in back)


def build_poolformer(timm, dims, layers):
    module = timm.models.metaformer
    flags = dict(downsample_norm=None, mlp_act=torch.nn.GELU, mlp_bias=True, use_mlp_head=False)
    flags |= dict(norm_layers=module.GroupNorm1, layer_scale_init_values=0.1)
    flags |= dict(res_scale_init_values=None, num_classes=K)
    return module.MetaFormer(dims=dims, depths=layers, **flags)


def build_bit(timm, dims, layers):
    module = timm.models.resnetv2
    conv = functools.partial(timm.layers.StdConv2d, eps=1e-8)
    sizes = dict(channels=dims, layers=layers, stem_chs=dims[0] // 4, num_classes=K)
    return module.ResNetV2(**sizes, stem_type="fixed", conv_layer=conv)


TIMM = {"poolformer_s12": build_poolformer, "bit_r50x1": build_bit}


@every_published
def test_timms_own_models_give_the_same_logits(preset, timm, randomised):
    theirs = randomised(TIMM[preset](timm, *PYRAMIDS[preset])).eval()
    model = tiny(preset, image_size=IMAGE).double().eval()
    model.load_state_dict(from_format(theirs.state_dict())[0])
    images = torch.randn(2, 3, IMAGE, IMAGE, dtype=torch.float64)
    assert_close(model(images), theirs(images))


@every_published
def test_other_families_are_refused_in_words(preset):
    weights = random_weights(tiny(preset))
    name = recognise(weights)[0].name
    others = [other for other in EQUATIONS if other != preset]
    for other in ("resmlp_s12", *others):
        with pytest.raises(UserError, match=f"timm {name} weights, but the model is of another"):
            check_fit(weights, tiny(other))


def staggered(x, along):
    """Equation 3 of arXiv 2107.10224 with a step of 3, value by value. (B, rows, columns, C)."""
    _, rows, columns, channels = x.shape
    y = torch.zeros_like(x)
    for r in range(rows):
        for s in range(columns):
            for c in range(channels):
                offset = (c + 1) % 3 - 1
                down, right = (offset, 0) if along == "rows" else (0, offset)
                if 0 <= r + down < rows and 0 <= s + right < columns:
                    y[:, r, s, c] = x[:, r + down, s + right, c]
    return y


@pytest.mark.parametrize("grid", [(3, 4), (1, 2), (2, 1), (1, 1)])
def test_channels_are_read_from_three_neighbours_in_turn(grid):
    x = torch.randn(2, *grid, 7)
    for name, dim in (("rows", ROWS), ("columns", COLUMNS)):
        assert stagger(x, dim).equal(staggered(x, name))


def test_cyclemlp_follows_its_equations(randomised):
    model = randomised(tiny("cyclemlp_b1", image_size=IMAGE, mlp_ratio=[2, 3])).eval()
    w, images = model.state_dict(), torch.randn(2, 3, IMAGE, IMAGE, dtype=torch.float64)
    x = convolve(images, w, "stem.conv", 4, 2).movedim(1, 3)
    for stage, depth in enumerate(PYRAMIDS["cyclemlp_b1"][1]):
        if stage:
            at = f"stages.{stage}.downsample.conv"
            x = convolve(x.movedim(3, 1), w, at, 2, 1).movedim(1, 3)
        for i in range(depth):
            at = f"stages.{stage}.blocks.{i}."
            y = norm(x, w, f"{at}norm_1", 1e-5)
            mix = f"{at}mix_tokens."
            branches = [linear(staggered(y, n), w, f"{mix}{n}") for n in ("columns", "rows")]
            branches.append(y @ w[f"{mix}channels.weight"].mT)
            mean = sum(branches).flatten(1, 2).mean(1)
            scores = linear(gelu(linear(mean, w, f"{mix}attention.fc1")), w, f"{mix}attention.fc2")
            share = scores.view(2, -1, 3).softmax(2)  # the three of a channel stand together
            y = sum(branch * share[:, None, None, :, k] for k, branch in enumerate(branches))
            x = x + linear(y, w, f"{mix}out")
            x = x + mlp(norm(x, w, f"{at}norm_2", 1e-5), w, f"{at}mix_channels")
    x = norm(x, w, "pool.norm", 1e-5).flatten(1, 2).mean(1)
    assert_close(model(images), linear(x, w, "head"))


def as_published(w):
    """BiT's weights by timm's names -> the arrays of google-research/big_transfer."""
    arrays = {}
    for name, tensor in w.items():
        array = tensor.permute(2, 3, 1, 0).numpy() if tensor.dim() == 4 else tensor.numpy()
        leaf = "beta" if name.endswith("bias") else "gamma"
        *place, part, _ = name.replace("downsample.conv", "proj").split(".")
        if place[:1] == ["stages"]:
            letter = "a" if part == "proj" else "abc"[int(part[-1]) - 1]
            start = f"resnet/block{int(place[1]) + 1}/unit{int(place[3]) + 1:02d}/{letter}/"
            kernel = "proj/standardized_conv2d" if part == "proj" else "standardized_conv2d"
        else:
            start, kernel = "resnet/", "root_block/standardized_conv2d"
        if place == ["head"]:
            arrays[f"resnet/head/conv2d/{'bias' if leaf == 'beta' else 'kernel'}"] = array
        elif "norm" in part:
            arrays[f"{start}group_norm/{leaf}"] = array
        else:
            arrays[f"{start}{kernel}/kernel"] = array
    return arrays


def test_the_published_arrays_of_bit_are_read_and_others_refused(tmp_path):
    model = tiny("bit_r50x1", image_size=IMAGE)
    weights, path = random_weights(model), tmp_path / "x.npz"
    arrays = as_published(weights)
    assert "resnet/block2/unit01/a/proj/standardized_conv2d/kernel" in arrays
    np.savez(path, **arrays)
    found = read_weights(path)
    assert found.keys() == weights.keys() and all(found[n].equal(weights[n]) for n in weights)
    for others, said in (
        (arrays | {"resnet/block1/unit01/d/group_norm/gamma": np.zeros(3)}, "unit01/d/group"),
        ({"a": np.zeros(3)}, "not the published arrays of BiT; unknown: a"),
        ({"a": np.array([{}])}, "x.npz: "),
    ):
        np.savez(path, **others)
        with pytest.raises(UserError, match=said):
            read_weights(path)


def test_timm_reads_the_same_arrays(timm, tmp_path):
    theirs = build_bit(timm, *PYRAMIDS["bit_r50x1"])
    weights = random_weights(tiny("bit_r50x1"))
    np.savez(tmp_path / "x.npz", **as_published({n: t.float() for n, t in weights.items()}))
    theirs.load_pretrained(tmp_path / "x.npz")
    assert all(t.equal(weights[n].float()) for n, t in theirs.state_dict().items())


def test_a_bit_starts_with_a_head_of_zeros_and_has_32_groups():
    assert not tiny("bit_r50x1").head.weight.any()
    with pytest.raises(UserError, match="--embed-dim must be multiples of 128: .*; not 192"):
        tiny("bit_r50x1", embed_dim=[128, 192])


def test_what_timm_has_not_is_not_written_for_it():
    for preset, said in (
        ("cyclemlp_b1", "it is none of ResMLP, .* PoolFormer"),
        ("adafc_s", "cannot hold this model: its token mixer is not 'pooling'"),
    ):
        with pytest.raises(UserError, match=said):
            to_format(tiny(preset).state_dict(), "timm")


def pass_through(x, weights):
    """Algorithm 1 of the paper, its two lines of a shift read as one roll. (B, C, P), (C, P)."""
    weights, y = weights.softmax(1), torch.empty_like(x)
    for p in range(x.size(2)):
        y[:, :, p] = (x * weights).sum(2)
        weights = torch.cat([weights[:, -1:], weights[:, :-1]], dim=1)
    return y


@pytest.mark.parametrize("stride", [4, 2])
def test_adafc_follows_its_algorithm(stride, randomised):
    model = randomised(tiny("adafc_s", image_size=IMAGE, stem_stride=stride)).eval()
    w, images = model.state_dict(), torch.randn(2, 3, IMAGE, IMAGE, dtype=torch.float64)
    x = convolve(images, w, "stem", stride, stride // 2)
    for stage, depth in enumerate(PYRAMIDS["adafc_s"][1]):
        if stage:
            x = convolve(x, w, f"stages.{stage}.downsample", 2, 1)
        vertical, horizontal = (w[f"stages.{stage}.shared.{n}"] for n in ("vertical", "horizontal"))
        for i in range(depth):
            at = f"stages.{stage}.blocks.{i}."
            y = group_norm(x, w, f"{at}norm_1")
            y = torch.stack([pass_through(part, vertical) for part in y.unbind(3)], 3)
            y = torch.stack([pass_through(part, horizontal) for part in y.unbind(2)], 2)
            y = pointwise(y, w, f"{at}mix_tokens.out")
            x = x + w[f"{at}scale_1.gamma"][:, None, None] * y
            y = gelu(pointwise(group_norm(x, w, f"{at}norm_2"), w, f"{at}mix_channels.fc1"))
            y = pointwise(y, w, f"{at}mix_channels.fc2")
            x = x + w[f"{at}scale_2.gamma"][:, None, None] * y
    assert_close(model(images), linear(norm(x.mean((2, 3)), w, "pool.norm"), w, "head"))


def test_a_stage_of_adafc_owns_its_weights_once_and_they_may_be_frozen():
    model = tiny("adafc_m_init", layers=[1, 3], embed_dim=[8, 12])
    owned = [name for name in model.state_dict() if name.endswith(("vertical", "horizontal"))]
    assert owned == [f"stages.{i}.shared.{d}" for i in (0, 1) for d in ("vertical", "horizontal")]
    fixed = [name for name, weight in model.named_parameters() if not weight.requires_grad]
    assert fixed == owned
    with torch.device("meta"):
        large = build("adafc_s", 224)
    shapes = [w.shape for w in large.stages[0].shared.parameters()]
    assert shapes == [(64, 56), (64, 56)]
    drawn = AxisWeights(200, (20, 20), frozen=False).vertical
    assert abs(drawn.mean()) < 0.01 and 0.095 < drawn.std() < 0.105
    with pytest.raises(UserError, match="--freeze-mixing: --token-mixer pooling has no weights"):
        tiny("poolformer_s12", freeze_mixing=True)


@pytest.mark.parametrize("new", [(6, 10), (5, 7), (2, 3), (3, 5)])
def test_adafc_looks_equally_far_on_another_grid(new):
    old = (3, 5)
    shared, place = AxisWeights(4, old, frozen=False).double(), torch.arange
    resized = shared.resize(shared.state_dict(), old, new)
    assert shared.find_grid(resized) == new
    for name, before, after in zip(("vertical", "horizontal"), old, new, strict=True):
        assert resized[name].shape == (4, after)
        for p in place(after).tolist():
            at = p * before / after  # the same part of the way around
            low, share = int(at), at - int(at)
            line = shared.state_dict()[name]
            expected = line[:, low] * (1 - share) + line[:, (low + 1) % before] * share
            assert_close(resized[name][:, p], expected)
    assert shared.find_grid({"vertical": torch.zeros(3)}) is None


def test_stem_and_stages_have_the_grids_that_torch_makes():
    cases = [(p, stride) for p in ("poolformer_s12", "bit_r50x1") for stride in (1, 2, 4)]
    for (preset, stride), size in itertools.product(cases, (1, 2, 3, 4, 5, 6, 11, 16)):
        flags = dict(stem_stride=stride, layers=[1, 1])
        try:
            model = tiny(preset, image_size=size, **flags).eval()
        except UserError as error:
            assert f"{size} pixels is too small for a stem of stride {stride}" in str(error)
            assert size < 3 and stride == 4
            continue
        x = model.stem(torch.randn(2, 3, size, size))
        for stage in model.stages:
            x = stage(x)
            assert x.shape[2:] == stage.grid


@pytest.mark.parametrize(
    "flags, said",
    [
        (dict(layers=[2, 2]), "--layers 2,2 and --embed-dim 64,128,320,512: give one of each"),
        (dict(layers=[2, 0, 2, 2]), "--layers must be at least 1, not 0"),
        (dict(embed_dim=[0] * 4), "--embed-dim must be at least 1"),
        (dict(mlp_ratio=[4, 4]), "--mlp-ratio 4,4: give one for all stages, or one for each"),
        (dict(mlp_ratio=[0]), "--mlp-ratio must be at least 1"),
        (dict(stem_stride=3), "--stem-stride 3: it is one of 4,2,1"),
        (dict(drop_path=1.0), "drop path rate of 1.0 is not in"),
        (dict(dropout=2.0), "--dropout is a probability"),
    ],
)
def test_impossible_sizes_are_refused(flags, said):
    with pytest.raises(UserError, match=said):
        build("poolformer_s12", 32, **flags)
