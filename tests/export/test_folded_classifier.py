"""Folded classifiers in every form of the compiled code against the models they were made of."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from engines.test_folded_search import kind  # noqa: F401
from export.classifiers import MEAN, STD, build

from resmlp_mt.data.augment import Normalise
from resmlp_mt.engines.kernels.classifier import ClassifierKernel
from resmlp_mt.export.folded_classifier import can_fold, describe_classifier
from resmlp_mt.models.folded import SharedWeights


def read(described, arrays, side=16, threads=1) -> ClassifierKernel:
    return ClassifierKernel(described, arrays, 3, side, 7, threads)


def compile_classifier(model, int8=False, threads=1) -> ClassifierKernel:
    shared = SharedWeights()
    described = describe_classifier(model, MEAN, STD, int8, shared)
    return read(described, shared.arrays, threads=threads)


def name(weight, scales=None, bias=None):
    """A product by the names of its arrays."""
    return {"weight": weight, "scales": scales, "bias": bias}


def describe(blocks, hidden, patch, centred, head):
    """A classifier without layers behind its blocks."""
    described = {"layers": [], "embedding": None, "norm": None, "hidden": hidden, "patch": patch}
    return described | {"blocks": blocks, "centred": centred, "head": head}


@pytest.mark.parametrize("pooling", ["average", "class-mlp"])
@pytest.mark.parametrize("norm", ["affine", "layer"])
def test_a_folded_classifier_gives_its_logits(norm, pooling, randomised):
    model = build(randomised, norm=norm, pooling=pooling)
    assert can_fold(model)
    with torch.no_grad():  # in 8 bits each output has a scale of its own
        model.head.weight *= torch.logspace(-3, 0, 7)[:, None]
        model.head.bias.zero_()
    pixels = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(Normalise(MEAN, STD)(pixels)).numpy()
    found = compile_classifier(model)(pixels.numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    near = compile_classifier(model, int8=True)(pixels.numpy())
    errors = np.abs(near - expected).max(0) / np.abs(expected).max(0)
    assert errors.min() > 0 and errors.max() < 0.15


def test_compiled_code_computes_after_a_thread_that_could_not_start(randomised, monkeypatch):
    model = build(randomised)
    several = compile_classifier(model, threads=3)
    pixels = np.zeros((2, 3, 16, 16), np.uint8)
    expected = compile_classifier(model)(pixels)
    started, really = [], threading.Thread.start

    def start_one(thread):
        started.append(thread)
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        really(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="start new thread"):
        several(pixels)
    started[0].join()  # which does not wait for the others
    assert (several(pixels) == expected).all()


@pytest.mark.parametrize("int8", [False, True])
def test_threads_and_batches_change_nothing_in_compiled_code(int8, randomised):
    model = build(randomised, norm="layer", pooling="class-mlp")
    pixels = torch.randint(256, (7, 3, 16, 16), dtype=torch.uint8).numpy()
    alone = compile_classifier(model, int8)
    singles = np.concatenate([alone(pixels[i : i + 1]) for i in range(7)])
    assert (alone(pixels) == singles).all()
    for threads in (2, 3, 5):
        several = compile_classifier(model, int8, threads)
        assert all((several(pixels) == singles).all() for _ in range(20))
        with ThreadPoolExecutor(4) as pool:
            assert all((found == singles).all() for found in pool.map(several, [pixels] * 12))


@pytest.mark.parametrize("part", ["stem.proj", "stages.0.blocks.2.mix_channels.fc1", "head"])
def test_no_number_in_8_bits_comes_of_what_is_none(part, randomised):
    model = build(randomised)
    with torch.no_grad():
        model.get_submodule(part).bias[0] = float("nan")
    pixels = np.zeros((1, 3, 16, 16), np.uint8)
    logits = compile_classifier(model, int8=True)(pixels)
    assert np.isnan(logits).tolist() == [[True, *6 * [part != "head"]]]


@pytest.mark.parametrize("channels", [1, 7, 20, 24])
def test_no_sum_of_8_bits_is_too_large(channels):
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
        "centred": np.zeros((3 * 16 * 16, channels), np.float32),
    }
    head = name("weight", "scales")
    described = describe([], 1, 16, name("centred", bias="row"), head)
    for row in rows.astype(np.float32):
        arrays["row"] = row
        found = read(described, arrays)(np.zeros((1, 3, 16, 16), np.uint8))[0]
        # Each input is off by half a step at most. A step is the largest / 126, or four times that
        # where four that meet are as large.
        allowed = 2 * np.abs(row).max() / 126 * np.abs(weight.astype(float)).sum(0)
        assert (np.abs(found - row @ weight) <= allowed * 1.001).all()


@pytest.mark.parametrize(("channels", "hidden"), [(13, 70), (68, 27)])
def test_each_row_of_8_bits_is_as_it_is_alone(channels, hidden):
    """Where nothing mixes them, an image is the mean of its patches, which are images too."""
    random, side, patch = np.random.default_rng(1), 18, 2
    sizes = {"first": (channels, hidden), "second": (hidden, channels)}
    arrays = {
        "centred": random.standard_normal((3 * patch * patch, channels), np.float32) / 500,
        "bias": random.standard_normal(channels, np.float32),
        "scale": np.ones(channels, np.float32),
        "head": random.standard_normal((channels, 7), np.float32),
    }
    block = {"norms": [1e-5, 1e-5], "matrix": "matrix", "scale": "scale", "offset": "offset"}
    for part, size in sizes.items():
        arrays[part] = random.integers(-127, 128, size).astype(np.int8)
        arrays[f"{part} scales"] = random.uniform(0.001, 0.01, size[1]).astype(np.float32)
        block[part] = name(part, f"{part} scales")
    centred = name("centred", bias="bias")
    described = describe([block, block], hidden, patch, centred, name("head"))

    def compute(images):
        patches = (images.shape[-1] // patch) ** 2
        arrays["matrix"] = np.zeros((patches, patches), np.float32)
        arrays["offset"] = np.zeros((patches, channels), np.float32)
        return read(described, arrays, images.shape[-1])(images)

    image = random.integers(256, size=(1, 3, side, side), dtype=np.uint8)
    patches = image.reshape(3, side // patch, patch, side // patch, patch)
    patches = np.ascontiguousarray(patches.transpose(1, 3, 0, 2, 4)).reshape(-1, 3, patch, patch)
    assert len(patches) == 81
    alone = compute(patches)
    assert alone.std(0).min() > 0.1
    np.testing.assert_allclose(compute(image)[0], alone.mean(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("side", "channels"), [(18, 13), (2, 128)])
def test_patches_are_mixed_in_8_bits(side, channels):
    """81 and 1 of them, whose products take 4 at a time. Channels are left as they are."""
    random, count = np.random.default_rng(1), (side // 2) ** 2
    arrays = {
        "centred": random.standard_normal((12, channels), np.float32) / 500,
        "matrix": random.standard_normal((count, count), np.float32) / 3,
        "scale": random.uniform(0.1, 2, channels).astype(np.float32),
        "offset": random.standard_normal((count, channels), np.float32),
        "zeros": np.zeros((channels, channels), np.int8),
        "ones": np.ones(channels, np.float32),
        "head": random.standard_normal((channels, 7), np.float32),
    }
    nothing = name("zeros", "ones")
    block = {"norms": [1e-5, None], "first": nothing, "second": nothing}
    block |= {part: part for part in ("matrix", "scale", "offset")}
    described = describe([block, block], channels, 2, name("centred"), name("head"))
    images = random.integers(256, size=(4, 3, side, side), dtype=np.uint8)
    patches = images.reshape(4, 3, side // 2, 2, side // 2, 2).transpose(0, 2, 4, 1, 3, 5)
    x = (patches.reshape(4, count, 12) - 128.0) @ arrays["centred"]
    for _ in range(2):
        normal = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
        x += arrays["matrix"] @ normal * arrays["scale"] + arrays["offset"]
    expected = x.mean(1) @ arrays["head"]
    found = [read(described, arrays, side, threads)(images) for threads in (1, 2, 3)]
    error = np.abs(found[0] - expected).max() / np.abs(expected).max()
    assert 0 < error < 0.05
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda d, a: d.update(hidden="20"), "no size"),
        (lambda d, a: d.update(norm=float("nan")), "no number"),
        (lambda d, a: d["blocks"][0].update(scale=d["blocks"][0]["matrix"]), "not"),
        (lambda d, a: d.update(patch=3), "patches of 3"),
        (lambda d, a: d["centred"].update(bias=d["blocks"][0]["matrix"]), "outputs"),
        (lambda d, a: d["layers"].append(d["blocks"][0]), "not"),
        (lambda d, a: a.update({k: v.astype(np.float64) for k, v in a.items()}), "float64"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(change, error, randomised):
    shared = SharedWeights()
    described = describe_classifier(build(randomised), MEAN, STD, False, shared)
    change(described, shared.arrays)
    with pytest.raises(ValueError, match=error):
        read(described, shared.arrays)(np.zeros((1, 3, 16, 16), np.uint8))
