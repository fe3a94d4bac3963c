"""Published weights, against an implementation of the released model of its own.

Names, shapes and equations are written here once more, from facebookresearch/deit and timm.
"""

import os
import pickle
from argparse import Namespace
from collections import OrderedDict
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from resmlp_mt.checkpoints.released import (
    check_fit,
    from_format,
    measure,
    recognise,
    to_format,
)
from resmlp_mt.checkpoints.weight_files import read_weights, unwrap
from resmlp_mt.errors import UserError
from resmlp_mt.models.image_classification import ResMLPImageConfig, ResMLPImageModel
from resmlp_mt.models.presets import IMAGE_PRESETS

# Section 1.11 of the paper's facts: exact counts of the released code.
PUBLISHED = {
    "resmlp_s12": 15_350_872,
    "resmlp_s24": 30_020_680,
    "resmlp_s36": 44_690_488,
    "resmlp_b24": 115_736_776,
    "resmlp_b24_8": 129_138_280,
}
both_layouts = pytest.mark.parametrize("layout", ["official", "timm"])


def shapes(layout, side=3, patch=4, dim=12, depth=2, classes=5, channels=3):
    """Names and shapes of the released model for side x side patches."""
    official = layout == "official"
    affine = (dim,) if official else (1, 1, dim)
    stem = "patch_embed" if official else "stem"
    found = {f"{stem}.proj.weight": (dim, channels, patch, patch), f"{stem}.proj.bias": (dim,)}
    for i in range(depth):
        tokens, channel_mlp = ("attn", "mlp") if official else ("linear_tokens", "mlp_channels")
        found |= {
            f"blocks.{i}.norm1.alpha": affine,
            f"blocks.{i}.norm1.beta": affine,
            f"blocks.{i}.{tokens}.weight": (side**2, side**2),
            f"blocks.{i}.{tokens}.bias": (side**2,),
            f"blocks.{i}.{'gamma_1' if official else 'ls1'}": (dim,),
            f"blocks.{i}.norm2.alpha": affine,
            f"blocks.{i}.norm2.beta": affine,
            f"blocks.{i}.{channel_mlp}.fc1.weight": (4 * dim, dim),
            f"blocks.{i}.{channel_mlp}.fc1.bias": (4 * dim,),
            f"blocks.{i}.{channel_mlp}.fc2.weight": (dim, 4 * dim),
            f"blocks.{i}.{channel_mlp}.fc2.bias": (dim,),
            f"blocks.{i}.{'gamma_2' if official else 'ls2'}": (dim,),
        }
    found |= {"norm.alpha": affine, "norm.beta": affine}
    return found | {"head.weight": (classes, dim), "head.bias": (classes,)}


def random_weights(layout, **sizes):
    return {
        name: torch.randn(shape, dtype=torch.float64)
        for name, shape in shapes(layout, **sizes).items()
    }


def forward(w, images, layout):
    """The released model from its equations. (B, 3, H, W) -> (B, K)."""
    official = layout == "official"
    stem = "patch_embed.proj" if official else "stem.proj"
    kernel = w[f"{stem}.weight"]
    x = F.conv2d(images, kernel, w[f"{stem}.bias"], stride=kernel.size(2)).flatten(2).mT
    depth = sum(name.endswith("norm1.alpha") for name in w)
    for i in range(depth):
        block = {n.removeprefix(f"blocks.{i}."): t for n, t in w.items() if f"blocks.{i}." in n}
        a, mlp = ("attn", "mlp") if official else ("linear_tokens", "mlp_channels")
        scale_1, scale_2 = ("gamma_1", "gamma_2") if official else ("ls1", "ls2")
        z = block["norm1.alpha"] * x + block["norm1.beta"]
        z = block[f"{a}.weight"] @ z + block[f"{a}.bias"][:, None]
        x = x + block[scale_1] * z
        z = block["norm2.alpha"] * x + block["norm2.beta"]
        z = F.gelu(z @ block[f"{mlp}.fc1.weight"].mT + block[f"{mlp}.fc1.bias"])
        x = x + block[scale_2] * (z @ block[f"{mlp}.fc2.weight"].mT + block[f"{mlp}.fc2.bias"])
    x = (w["norm.alpha"] * x + w["norm.beta"]).mean(1)
    return x @ w["head.weight"].mT + w["head.bias"]


def build(preset=None, side=3, channels=3, classes=5, head=None, **flags):
    cfg = SimpleNamespace(**{field.name: field.default for field in fields(ResMLPImageConfig)[1:]})
    tiny = dict(patch_size=4, embed_dim=12, layers=2)
    vars(cfg).update(IMAGE_PRESETS[preset] if preset else tiny, **flags)
    head = head or torch.nn.Linear(cfg.embed_dim, classes)
    return ResMLPImageModel(cfg, channels, side * cfg.patch_size, head).eval()


@both_layouts
def test_published_weights_give_the_logits_of_the_released_model(layout):
    weights = random_weights(layout)
    model = build().double()
    ours, found = from_format(weights)
    assert found == layout
    model.load_state_dict(ours)
    images = torch.randn(2, 3, 12, 12, dtype=torch.float64)
    torch.testing.assert_close(model(images), forward(weights, images, layout))


@both_layouts
def test_exported_weights_give_our_logits_in_the_released_model(layout, randomised):
    model = randomised(build())
    images = torch.randn(2, 3, 12, 12, dtype=torch.float64)
    exported = to_format(model.state_dict(), layout)
    assert {name: tuple(t.shape) for name, t in exported.items()} == shapes(layout)
    torch.testing.assert_close(forward(exported, images, layout), model(images))


def test_weights_come_back_from_a_tour_through_all_layouts():
    official = random_weights("official")
    ours, _ = from_format(official)
    again, layout = from_format(to_format(ours, "timm"))
    assert layout == "timm"
    back = to_format(again, "official")
    assert back.keys() == official.keys() and ours.keys() == again.keys()
    for one, other in ((ours, again), (official, back)):
        assert all(one[n].shape == other[n].shape and one[n].equal(other[n]) for n in one)


@both_layouts
@pytest.mark.parametrize("preset", PUBLISHED)
def test_the_presets_have_the_parts_and_the_size_of_the_released_models(preset, layout):
    dim = 768 if "b24" in preset else 384
    patch = 8 if preset.endswith("_8") else 16
    depth = int(preset.split("_")[1][1:])
    sizes = dict(side=224 // patch, patch=patch, dim=dim, depth=depth, classes=1000)
    with torch.device("meta"):  # shapes without memory
        model = build(preset, side=224 // patch, classes=1000)
        weights = {name: torch.empty(shape) for name, shape in shapes(layout, **sizes).items()}
    assert sum(weight.numel() for weight in weights.values()) == PUBLISHED[preset]
    check_fit(weights, model)
    ours, _ = from_format(weights)
    own = {name: tensor.shape for name, tensor in model.state_dict().items()}
    assert {name: tensor.shape for name, tensor in ours.items()} == own
    assert to_format(ours, layout).keys() == weights.keys()


@both_layouts
def test_sizes_are_measured_as_far_as_the_weights_tell(layout):
    weights = random_weights(layout, side=5, classes=7, channels=1)
    sizes = dict(positions=25, in_chans=1, layers=2, embed_dim=12, patch_size=4)
    assert measure(weights) == sizes | dict(num_classes=7)
    del weights["head.weight"]
    assert measure(weights) == sizes
    del weights["head.bias"]
    assert measure(weights) == sizes | dict(num_classes=0)


@both_layouts
def test_weights_without_a_head_go_both_ways(layout):
    weights = random_weights(layout)
    headless = {name: tensor for name, tensor in weights.items() if "head" not in name}
    model = build(head=torch.nn.Identity()).double()
    check_fit(headless, model)
    model.load_state_dict(from_format(headless)[0])
    assert to_format(model.state_dict(), layout).keys() == headless.keys()


@pytest.mark.parametrize("name", ["test_vit", "poolformerv2_s12"])
def test_other_families_of_timms_are_told_apart(timm, name):
    with torch.device("meta"):
        weights = timm.create_model(name).state_dict()
    with pytest.raises(UserError, match="neither the official"):
        recognise({n: t for n, t in weights.items() if t.is_floating_point()})


@both_layouts
@pytest.mark.parametrize("part", ["mixer.fc1", "attn.qkv", "conv"])
def test_other_families_are_told_apart(layout, part):
    # The stem, the norms and the MLP of channels have these names in many families.
    weights = {n: t for n, t in random_weights(layout).items() if "stem" in n or "patch" in n}
    mlp = "mlp" if layout == "official" else "mlp_channels"
    for name in (f"{part}.weight", "norm1.weight", f"{mlp}.fc1.weight", f"{mlp}.fc2.weight"):
        weights[f"blocks.0.{name}"] = torch.zeros(3)
    with pytest.raises(UserError, match=f"neither the official .*blocks.0.{part}.weight"):
        from_format(weights)


@pytest.mark.parametrize("keys", [("model", "model_ema"), ("state_dict", "state_dict_ema")])
def test_the_moving_average_of_a_training_is_taken_with_a_word(keys, caplog):
    plain, average = {"a": torch.zeros(2)}, {"module.a": torch.ones(2)}
    training = {keys[0]: plain, keys[1]: average, "epoch": 3}
    assert unwrap(training)["a"].equal(torch.ones(2))
    assert f"took {keys[1]}, the moving average" in caplog.text
    assert unwrap(training, ema=True)["a"].equal(torch.ones(2))
    assert unwrap(training, ema=False)["a"].equal(torch.zeros(2))
    assert len(caplog.messages) == 1
    with pytest.raises(UserError, match="no moving average .model_ema or state_dict_ema"):
        unwrap({keys[0]: plain, keys[1]: None}, ema=True)


@both_layouts
@pytest.mark.parametrize("wrapper", ["model", "state_dict", None])
@pytest.mark.parametrize("prefix", ["module.", "module._orig_mod.", "model.", ""])
def test_the_wrapper_of_a_training_is_taken_off(layout, wrapper, prefix):
    weights = random_weights(layout)
    wrapped = OrderedDict((prefix + name, tensor) for name, tensor in weights.items())
    wrapped = {wrapper: wrapped, "epoch": 3} if wrapper else wrapped
    ours, found = from_format(unwrap(wrapped))
    assert found == layout
    assert to_format(ours, layout).keys() == weights.keys()


@both_layouts
def test_all_that_does_not_fit_is_listed_at_once(layout):
    weights = random_weights(layout, dim=16)
    token = "attn" if layout == "official" else "linear_tokens"
    missing = [f"blocks.1.{token}.bias", "norm.beta"]
    for name in missing:
        del weights[name]
    weights["dist_token"] = weights["blocks.2.norm1.alpha"] = torch.zeros(3)
    with pytest.raises(UserError) as error:
        check_fit(weights, build())
    first, *lists = str(error.value).splitlines()
    assert layout in first
    lists = dict(line.strip().split(": ", 1) for line in lists)
    assert lists["missing"] == ", ".join(missing)
    assert lists["unknown"] == "dist_token, blocks.2.norm1.alpha"
    # Eight in each block, two in the stem, one of the norm and the head.
    assert lists["of another shape"].startswith(
        next(iter(weights)) + " (16, 3, 4, 4) instead of (12"
    )
    assert lists["of another shape"].count("instead of") == 10
    assert lists["of another shape"].endswith("and 14 more")


@both_layouts
def test_timms_affine_and_the_official_one_are_told_apart(layout):
    weights = random_weights(layout)
    weights["norm.alpha"] = weights["norm.alpha"].reshape(
        (1, 1, 12) if layout == "official" else 12
    )
    with pytest.raises(UserError, match="norm.alpha"):
        check_fit(weights, build())


@both_layouts
def test_unknown_names_are_refused_without_a_model_too(layout):
    weights = random_weights(layout) | {"blocks.0.norm_1.alpha": torch.zeros(12)}
    with pytest.raises(UserError, match=f"not {layout} .*unknown names: blocks.0.norm_1.alpha"):
        from_format(weights)


@pytest.mark.parametrize(
    "weights, said",
    [
        ({"layer1.0.conv1.weight": torch.zeros(1)}, "neither the official.*layer1.0.conv1"),
        ({f"norm.{i}": torch.zeros(1) for i in range(12)}, "norm.9 and 2 more"),
        ({"norm.alpha": torch.zeros(1)}, "neither the official"),
        ({"model": {"a.mix_channels.fc1.weight": torch.zeros(1)}, "cfg": {}}, "need no import"),
        ({"model": {"a": torch.zeros(1), "b": 3, "c": "x"}}, r"no weights: b \(int\), c \(str\)"),
        ({"a": torch.zeros(1, dtype=torch.int8)}, r"a \(torch.int8\)"),
        ({3: torch.zeros(1)}, r"3 \(torch.float32\)"),
        ({}, "no weights by their names"),
        ([torch.zeros(1)], "no weights by their names"),
        (torch.zeros(1), "no weights by their names"),
    ],
)
def test_what_is_not_released_weights_is_refused(weights, said):
    with pytest.raises(UserError, match=said):
        from_format(unwrap(weights))


@both_layouts
@pytest.mark.parametrize(
    "flags, said",
    [
        (dict(token_mixer="none"), ["token mixer"]),
        (dict(token_mixer="mlp"), ["token mixer"]),
        (dict(token_mixer="depthwise3x3"), ["token mixer"]),
        (dict(norm="layer"), ["norm"]),
        (dict(pooling="class-mlp"), ["pooling"]),
        (dict(head=torch.nn.Sequential(torch.nn.Linear(12, 5))), ["head"]),
        (dict(norm="layer", pooling="class-mlp", token_mixer="none"), "norm pooling token".split()),
    ],
    ids=lambda value: "-".join(value),
)
def test_other_than_the_released_form_cannot_be_exported(layout, flags, said):
    with pytest.raises(UserError, match="cannot hold this model") as error:
        to_format(build(**flags).state_dict(), layout)
    reasons = str(error.value).split(": ")[1].split(", ")
    assert [reason.split()[1] for reason in reasons] == [word.split()[0] for word in said]


def test_other_models_cannot_be_exported(build_model):
    with pytest.raises(UserError, match="it is none of ResMLP, MLP-Mixer"):
        to_format(build_model().state_dict(), "official")


@pytest.mark.parametrize("name", ["a.pth", "a.pt", "a.bin", "a.pth.tar", "a.safetensors", "a.PTH"])
def test_weights_are_read_from_files(name, tmp_path):
    weights = {"a": torch.randn(3, 2), "b": torch.randn(4).bfloat16()}
    if name.endswith("safetensors"):
        save_file(weights, tmp_path / name)
    else:
        training = {
            "model": weights,
            "epoch": 3,
            "args": Namespace(lr=0.1),
            "optimizer": {"x": [1]},
        }
        torch.save(training, tmp_path / name)
    read = read_weights(tmp_path / name)
    assert read.keys() == weights.keys()
    assert all(read[n].equal(weights[n]) and read[n].dtype == weights[n].dtype for n in weights)


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("form", ["torch", "old torch", "pickle 2", "pickle 4"])
def test_code_in_a_file_is_refused_and_not_run(form, tmp_path):
    content = {"model": {"a": torch.zeros(1)}, "x": Payload(tmp_path / "written")}
    path = tmp_path / "weights.pth"
    if "torch" in form:
        torch.save(content, path, _use_new_zipfile_serialization=form == "torch")
    else:
        path.write_bytes(pickle.dumps(content["x"], protocol=int(form[-1])))
    with pytest.raises(UserError, match="weights.pth: .*code") as error:
        read_weights(path)
    assert "GLOBAL" not in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "written").exists()
    if form != "pickle 4":
        assert "refused" in str(error.value) and "io.open" in str(error.value)


def test_torchscript_is_refused(tmp_path):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(tmp_path / "a.pt")
    with pytest.raises(UserError, match="refused: TorchScript"):
        read_weights(tmp_path / "a.pt")


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("left", [0, 5, 100, 1000, -100])
def test_broken_files_are_refused_by_their_name(suffix, left, tmp_path):
    path = tmp_path / f"weights{suffix}"
    weights = {"a": torch.randn(30, 20)}
    save_file(weights, path) if suffix == ".safetensors" else torch.save(weights, path)
    os.truncate(path, left % path.stat().st_size)
    with pytest.raises(UserError, match=f"weights{suffix}: .*corrupt") as error:
        read_weights(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("content", [b"hello\n", b"<!DOCTYPE html>\n<html>", bytes(range(256))])
def test_other_files_are_refused_by_their_name(suffix, content, tmp_path):
    path = tmp_path / f"weights{suffix}"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"weights{suffix}: .*corrupt"):
        read_weights(path)


def test_files_that_are_not_there_and_other_suffixes_are_refused(tmp_path):
    (tmp_path / "x.pth").mkdir()
    for name, said in (("a.pth", "no such file"), ("x.pth", "no such file"), ("a.zip", ".pth")):
        with pytest.raises(UserError, match=f"{name}: .*{said}"):
            read_weights(tmp_path / name)
