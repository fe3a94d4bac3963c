"""Folded classifiers in ONNX Runtime against the models that they were made of."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from models.test_families import FAMILIES, sizes
from torch import nn
from torch.testing import assert_close

from resmlp_mt.data.augment import Normalise
from resmlp_mt.engines.onnx.graph_file import read_graph
from resmlp_mt.errors import UserError
from resmlp_mt.models.images import ImageModel
from resmlp_mt.models.presets import IMAGE_PRESETS
from resmlp_mt.nn.blocks import ChannelMLP, DropPath, ResMLPBlock
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.patches import PatchEmbedding
from resmlp_mt.nn.stages import Stage
from resmlp_mt.nn.standardised import StandardisedConv

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
onnx = pytest.importorskip("onnx", reason="the extra [export] is not installed")

from resmlp_mt.engines.compiled_code.classifier import NativeClassifier  # noqa: E402
from resmlp_mt.engines.compiled_code.code import KINDS, find_library  # noqa: E402
from resmlp_mt.engines.onnx.step import start  # noqa: E402
from resmlp_mt.export.image_graph import (  # noqa: E402
    build_classifier,
    can_fold,
    describe_classifier,
)
from resmlp_mt.export.traced_graph import trace_classifier  # noqa: E402
from resmlp_mt.models.folded import SharedWeights  # noqa: E402

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]

# What 8 bits may change. Without VNNI, ONNX Runtime's sums of two products overflow in 16 bits.
ROUNDING = 0.1 if torch.cpu._is_vnni_supported() else 0.4


def build(randomised, preset="resmlp_cifar", **flags):
    cfg = SimpleNamespace(ffn_embed_dim=20, **sizes(preset, layers=3), **flags)
    ARCH_CONFIG_REGISTRY[preset](cfg)
    task = SimpleNamespace(in_chans=3, image_size=16, build_head=lambda dim: nn.Linear(dim, 7))
    model = ARCH_MODEL_REGISTRY[preset].build_model(cfg, task)
    return randomised(model).float().eval()


def logits(model, pixels, int8=False):
    session = start(build_classifier(model, MEAN, STD, int8), threads=1)
    return torch.from_numpy(session.run(["logits"], {"pixels": pixels.numpy()})[0])


def compile_classifier(model, kind, int8=False, threads=1) -> NativeClassifier:
    shared = SharedWeights()
    described = describe_classifier(model, MEAN, STD, int8, shared)
    return read_compiled(described, shared.arrays, kind, threads)


def read_compiled(described, arrays, kind, threads=1, side=16) -> NativeClassifier:
    library = find_library()
    if library is None or not getattr(library, f"has_{kind}")():
        pytest.skip(f"nothing was built for {kind}, or this processor has none")
    compute = getattr(library, f"classify_{kind}")
    return NativeClassifier(described, arrays, 3, side, 7, threads, compute)


@pytest.fixture(params=["graph", *KINDS])
def compute(request):
    """compute(model, pixels, int8): logits of an export, in each way that it can run."""
    if request.param == "graph":
        return logits

    def run(model, pixels, int8=False):
        return torch.from_numpy(compile_classifier(model, request.param, int8)(pixels.numpy()))

    return run


@pytest.mark.parametrize("pooling", ["average", "class-mlp"])
@pytest.mark.parametrize("norm", ["affine", "layer"])
def test_an_exported_classifier_gives_its_logits(norm, pooling, randomised, compute):
    model = build(randomised, norm=norm, pooling=pooling)
    assert can_fold(model)
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(Normalise(MEAN, STD)(pixels))
    assert_close(compute(model, pixels), expected, rtol=1e-4, atol=1e-4)
    assert_close(compute(model, pixels[:1]), expected[:1], rtol=1e-4, atol=1e-4)
    near = compute(model, pixels, int8=True)
    error = (near - expected).abs().max() / expected.abs().max()
    assert 0 < error < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_computes_after_a_thread_that_could_not_start(kind, randomised, monkeypatch):
    model = build(randomised)
    several = compile_classifier(model, kind, threads=3)
    pixels = np.zeros((2, 3, 16, 16), np.uint8)
    expected = compile_classifier(model, kind)(pixels)
    started, really = [], threading.Thread.start

    def start_one(thread):
        started.append(thread)
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        really(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="start new thread"):
        several(pixels)
    assert not started[0].is_alive()  # it does not wait for the others
    assert (several(pixels) == expected).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_computes_in_a_process_that_was_forked(kind, randomised):
    several = compile_classifier(build(randomised), kind, threads=2)
    pixels = np.zeros((2, 3, 16, 16), np.uint8)
    expected = several(pixels)
    child = os.fork()
    if not child:
        os._exit(not (several(pixels) == expected).all())
    ended = (0, 0)
    for _ in range(18_000):  # half an hour, in which it hangs
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_batches_change_nothing_in_compiled_code(kind, int8, randomised):
    model = build(randomised, norm="layer", pooling="class-mlp")
    pixels = torch.randint(256, (7, 3, 16, 16), dtype=torch.uint8).numpy()
    alone = compile_classifier(model, kind, int8)
    singles = np.concatenate([alone(pixels[i : i + 1]) for i in range(7)])
    assert (alone(pixels) == singles).all()
    for threads in (2, 3, 5):
        several = compile_classifier(model, kind, int8, threads)
        for _ in range(20):
            assert (several(pixels) == singles).all()
        with ThreadPoolExecutor(4) as pool:
            assert all((found == singles).all() for found in pool.map(several, [pixels] * 12))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["stem.proj", "stages.0.blocks.2.mix_channels.fc1", "head"])
def test_no_number_in_8_bits_comes_of_what_is_none(part, kind, randomised):
    model = build(randomised)
    with torch.no_grad():
        model.get_submodule(part).bias[0] = float("nan")
    pixels = np.zeros((1, 3, 16, 16), np.uint8)
    logits = compile_classifier(model, kind, int8=True)(pixels)
    assert np.isnan(logits).tolist() == [[True, *6 * [part != "head"]]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 7, 20, 24])
def test_no_sum_of_8_bits_is_too_large(channels, kind):
    """AVX2 adds up four products in 16 bits. Here all that it multiplies are as large as can be."""
    every = np.ones(channels)
    turns = np.where(np.arange(channels) % 2, -1, 1)
    pairs = np.where(np.arange(channels) // 2 % 2, -1, 1)
    rows = np.stack([every, turns, pairs, -every, np.eye(channels)[0], pairs * np.arange(channels)])
    weight = (127 * np.stack([every, -every, turns, pairs, -turns, 0 * every, every], 1)).astype(
        np.int8
    )
    arrays = {
        "weight": weight,
        "scales": np.ones(7, np.float32),
        "pixels": np.zeros((channels, 3, 16, 16), np.float32),
        "centred": np.zeros((3 * 16 * 16, channels), np.float32),
    }
    described = {"blocks": [], "layers": [], "embedding": None, "norm": None, "hidden": 1}
    described["embed"] = {"weight": "pixels", "bias": "row"}
    described["centred"] = {"weight": "centred", "scales": None, "bias": "row"}
    described["head"] = {"weight": "weight", "scales": "scales", "bias": None}
    for row in rows.astype(np.float32):
        arrays["row"] = row
        found = read_compiled(described, arrays, kind)(np.zeros((1, 3, 16, 16), np.uint8))[0]
        # Each input is off by half a step at most. A step is the largest / 126, or four times that
        # where four that meet are as large.
        allowed = 2 * np.abs(row).max() / 126 * np.abs(weight.astype(float)).sum(0)
        assert (np.abs(found - row @ weight) <= allowed * 1.001).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("channels", "hidden"), [(13, 70), (68, 27)])
def test_each_row_of_8_bits_is_as_it_is_alone(channels, hidden, kind):
    """Where nothing mixes them, an image is the mean of its patches, which are images too."""
    random, side, patch = np.random.default_rng(1), 18, 2
    sizes = {"first": (channels, hidden), "second": (hidden, channels)}
    arrays = {
        "pixels": np.zeros((channels, 3, patch, patch), np.float32),
        "centred": random.standard_normal((3 * patch * patch, channels), np.float32) / 500,
        "bias": random.standard_normal(channels, np.float32),
        "scale": np.ones(channels, np.float32),
        "head": random.standard_normal((channels, 7), np.float32),
    }
    block = {"norms": [1e-5, 1e-5], "matrix": "matrix", "scale": "scale", "offset": "offset"}
    for name, size in sizes.items():
        arrays[name] = random.integers(-127, 128, size).astype(np.int8)
        arrays[f"{name} scales"] = random.uniform(0.001, 0.01, size[1]).astype(np.float32)
        block[name] = {"weight": name, "scales": f"{name} scales", "bias": None}
    described = {"layers": [], "embedding": None, "norm": None, "hidden": hidden}
    described |= {"blocks": [block, block], "embed": {"weight": "pixels", "bias": "bias"}}
    described["centred"] = {"weight": "centred", "scales": None, "bias": "bias"}
    described["head"] = {"weight": "head", "scales": None, "bias": None}

    def compute(images):
        patches = (images.shape[-1] // patch) ** 2
        arrays["matrix"] = np.zeros((patches, patches), np.float32)
        arrays["offset"] = np.zeros((patches, channels), np.float32)
        return read_compiled(described, arrays, kind, side=images.shape[-1])(images)

    image = random.integers(256, size=(1, 3, side, side), dtype=np.uint8)
    patches = image.reshape(3, side // patch, patch, side // patch, patch)
    patches = np.ascontiguousarray(patches.transpose(1, 3, 0, 2, 4)).reshape(-1, 3, patch, patch)
    assert len(patches) == 81
    alone = compute(patches)
    assert alone.std(0).min() > 0.1
    np.testing.assert_allclose(compute(image)[0], alone.mean(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("side", "channels"), [(18, 13), (6, 68), (2, 128)])
def test_patches_are_mixed_in_8_bits(side, channels, kind):
    """81, 9 and 1 of them, whose products take 4 at a time. Channels are left as they are."""
    random, count = np.random.default_rng(1), (side // 2) ** 2
    arrays = {
        "pixels": np.zeros((channels, 3, 2, 2), np.float32),
        "centred": random.standard_normal((12, channels), np.float32) / 500,
        "matrix": random.standard_normal((count, count), np.float32) / 3,
        "scale": random.uniform(0.1, 2, channels).astype(np.float32),
        "offset": random.standard_normal((count, channels), np.float32),
        "zeros": np.zeros((channels, channels), np.int8),
        "ones": np.ones(channels, np.float32),
        "head": random.standard_normal((channels, 7), np.float32),
    }
    nothing = {"weight": "zeros", "scales": "ones", "bias": None}
    block = {"norms": [1e-5, None], "first": nothing, "second": nothing}
    block |= {name: name for name in ("matrix", "scale", "offset")}
    described = {"layers": [], "embedding": None, "norm": None, "hidden": channels}
    described |= {"blocks": [block, block], "embed": {"weight": "pixels"}}
    for name in ("centred", "head"):
        described[name] = {"weight": name, "scales": None, "bias": None}
    images = random.integers(256, size=(4, 3, side, side), dtype=np.uint8)
    patches = images.reshape(4, 3, side // 2, 2, side // 2, 2).transpose(0, 2, 4, 1, 3, 5)
    x = (patches.reshape(4, count, 12) - 128.0) @ arrays["centred"]
    for _ in range(2):
        normal = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
        x += arrays["matrix"] @ normal * arrays["scale"] + arrays["offset"]
    expected = x.mean(1) @ arrays["head"]
    found = [read_compiled(described, arrays, kind, threads, side)(images) for threads in (1, 2, 3)]
    error = np.abs(found[0] - expected).max() / np.abs(expected).max()
    assert 0 < error < 0.05
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda d, a: d.update(hidden=21), "not"),
        (lambda d, a: d.update(hidden="20"), "hidden channels"),
        (lambda d, a: d.update(norm=float("nan")), "no number"),
        (lambda d, a: d["blocks"][0].update(scale=d["blocks"][0]["matrix"]), "not"),
        (lambda d, a: d["embed"].update(weight=d["blocks"][0]["matrix"]), "an embedding of"),
        (lambda d, a: d["centred"].update(bias=d["blocks"][0]["matrix"]), "outputs"),
        (lambda d, a: d["centred"].update(weight=d["blocks"][0]["matrix"]), "not"),
        (lambda d, a: d["layers"].append(d["blocks"][0]), "not"),
        (lambda d, a: a.update({k: v.astype(np.float64) for k, v in a.items()}), "float64"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(change, error, randomised):
    shared = SharedWeights()
    described = describe_classifier(build(randomised), MEAN, STD, False, shared)
    change(described, shared.arrays)
    with pytest.raises(ValueError, match=error):
        NativeClassifier(described, shared.arrays, 3, 16, 7, 1, None)


def test_pixels_of_another_size_are_refused(randomised):
    compute = compile_classifier(build(randomised), "plain")
    for pixels in (np.zeros((1, 3, 16, 15), np.uint8), np.zeros((1, 3, 16, 16), np.float32)):
        with pytest.raises(ValueError, match="pixels"):
            compute(pixels)


class Roll(nn.Module):
    """A stranger's mixer, on (B, C, rows, columns): a part of the channels moves by one row."""

    def forward(self, x):
        moved, kept = x.split((2, x.size(1) - 2), dim=1)
        return torch.cat([moved.roll(1, dims=2), kept], dim=1)


def build_strange(randomised) -> ImageModel:
    """A stranger's pyramid of two stages."""

    def block(dim):
        parts = dict(norm_1=nn.GroupNorm(1, dim), norm_2=nn.GroupNorm(1, dim), mix_tokens=Roll())
        scales = dict(scale_1=nn.Identity(), scale_2=LayerScale(dim, 0.5, trailing=2))
        mlp = ChannelMLP(dim, 9, linear=partial(nn.Conv2d, kernel_size=1))
        return ResMLPBlock(**parts, **scales, mix_channels=mlp, drop=DropPath(0.1))

    stages = [
        Stage((8, 8), nn.Identity(), [block(6)]),
        Stage((4, 4), nn.Conv2d(6, 10, 3, stride=2, padding=1), [block(10), block(10)]),
    ]
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = ImageModel(16, nn.Conv2d(3, 6, 2, stride=2), stages, pool, nn.Linear(10, 7))
    return randomised(model).float().eval()


def build_transformer(randomised) -> nn.Module:
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    pool = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 7))
    return randomised(nn.Sequential(PatchEmbedding(3, 12, 4), encoder, pool)).float().eval()


STRANGERS = {"pyramid": build_strange, "transformer": build_transformer}


@pytest.mark.parametrize("name", ["none", "mlp", "separable3x3", *STRANGERS, *FAMILIES[1:]])
def test_a_classifier_without_a_fold_is_exported_as_it_is(name, randomised, tmp_path, capfd):
    flags = dict(preset=name) if name in IMAGE_PRESETS else dict(token_mixer=name)
    model = STRANGERS.get(name, partial(build, **flags))(randomised)
    assert not can_fold(model)
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(Normalise(MEAN, STD)(pixels))
    path = tmp_path / "classifier.onnx"
    for int8, error in ((False, 1e-4), (True, 2 * ROUNDING)):
        path.write_bytes(trace_classifier(model, MEAN, STD, 16, int8))
        session = start(read_graph(path), threads=1)
        for batch in (pixels, pixels[:1]):
            found = torch.from_numpy(session.run(["logits"], {"pixels": batch.numpy()})[0])
            assert_close(found, expected[: len(batch)], rtol=error, atol=error)
    assert capfd.readouterr() == ("", "")


def test_standardised_weights_are_constants_of_the_graph():
    conv = StandardisedConv(3, 4, 3)
    model = nn.Sequential(conv, nn.Flatten(), nn.Linear(4 * 14 * 14, 7))
    graph = onnx.load_from_string(trace_classifier(model, MEAN, STD, 16, False)).graph
    (node,) = (node for node in graph.node if node.op_type == "Conv")
    weights = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    flat = weights[node.input[1]].reshape(4, -1)
    assert np.allclose(flat.mean(1), 0, atol=1e-5) and np.allclose(flat.std(1), 1, atol=1e-5)
    shapes = [weight.shape for weight in weights.values()]
    assert shapes.count((4, 3, 3, 3)) == 1  # what it was made of is left out


def test_what_a_graph_cannot_follow_is_refused():
    class Unknown(nn.Module):
        def forward(self, images):
            return torch.linalg.eigvals(images.mean(1)).real

    class Fixed(nn.Module):
        def forward(self, images):
            return images.flatten().view(len(images), -1)

    for model in (Unknown(), Fixed()):
        with pytest.raises(UserError, match=f"torch cannot export a {type(model).__name__}"):
            trace_classifier(model, MEAN, STD, 16, False)


def test_int8_weights_have_a_scale_for_each_output(randomised):
    model = build(randomised)
    with torch.no_grad():
        model.head.weight *= torch.logspace(-3, 0, 7)[:, None]
        model.head.bias.zero_()
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    exact, near = logits(model, pixels), logits(model, pixels, int8=True)
    relative = (near - exact).abs().amax(0) / exact.abs().amax(0)
    assert np.all(relative.numpy() < ROUNDING)
