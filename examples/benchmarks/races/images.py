"""Images per second of classifiers: of one in several forms, or of several.

One is raced unfolded in torch, exported, and as timm's, plain and compiled. Several are raced
unfolded. Counted is the network, from uint8 pixels to logits. Decoding and cutting pictures are
not. The weights are random, the same for all.
"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from races.image_models import ModelCase
from races.rounds import Rival, peak_memory
from resmlp_mt.checkpoints.released import to_format
from resmlp_mt.data.augment import Normalise
from resmlp_mt.engines.kernels.classifier import ClassifierKernel
from resmlp_mt.engines.onnx_graph import start_graph
from resmlp_mt.errors import UserError
from resmlp_mt.export.folded_classifier import fold_or_trace
from resmlp_mt.extras import import_timm
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.presets import BIT_PRESETS, IMAGE_PRESETS, IMAGENET, POOLFORMER_PRESETS

# Our preset: timm's name, where that is not ours with the size of its images.
_TIMM = {
    **{name: name for name in POOLFORMER_PRESETS},
    **{name: f"resnetv2_{name.removeprefix('bit_r')}_bit" for name in BIT_PRESETS},
    "resmlp_s12": "resmlp_12_224",
    "resmlp_s24": "resmlp_24_224",
    "resmlp_s36": "resmlp_36_224",
    "resmlp_b24_8": "resmlp_big_24_224",
}


FIGURES = ("rate", "error", "memory_mib")  # what is measured of each rival


@dataclass(frozen=True)
class Case:
    """So many batches of so many images."""

    batch: int
    batches: int


def list_rivals(models: list[ModelCase], with_timm: bool, threads: int) -> list[Rival]:
    """The rivals: each model unfolded, or of a single one all its forms.

    Of one, timm's model comes first where it takes part, else the unfolded one. The exported ones
    come last.

    Raises:
        UserError: If timm shall take part and is not there, or there are several models.
    """
    if len(models) > 1:
        if with_timm:
            raise UserError("--timm: timm's model is raced with one of ours; name one --arch")
        return [_rival(model.arch, _build_plain, model, threads) for model in models]
    if with_timm and import_timm() is None:
        raise UserError("--timm: timm is not installed: pip install timm")
    builders = {"timm": _build_timm, "timm compiled": _build_compiled} if with_timm else {}
    builders |= {"unfolded": _build_plain, "exported": _build_float, "exported int8": _build_int8}
    return [_rival(name, build, models[0], threads) for name, build in builders.items()]


def _rival(name: str, build, model: ModelCase, threads: int) -> Rival:
    return Rival(name, _Runner, dict(build=build, model=model, threads=threads))


class _Runner:
    """Runs a model; `build(model, threads)` makes it."""

    def __init__(self, build, model: ModelCase, threads: int):
        self.model, self.compute = model, build(model, threads)
        images = model.draw_images(4)
        expected = _build_plain(model, threads)(images)
        distance = (self.compute(images) - expected).square().mean().sqrt()
        self.error = float(distance / expected.std())

    def __call__(self, case: Case) -> dict[str, float]:
        images = self.model.draw_images(case.batch)
        start = time.perf_counter()
        for _ in range(case.batches):
            self.compute(images)
        seconds = time.perf_counter() - start
        figures = (case.batch * case.batches / seconds, self.error, peak_memory())
        return dict(zip(FIGURES, figures, strict=True))


def _build_plain(model: ModelCase, threads: int):
    return _inferring(_normalising(model.build(), model))


def _build_float(model: ModelCase, threads: int, int8: bool = False):
    shared = SharedWeights()
    described, graph = fold_or_trace(model.build(), *_scale(model), model.image_size, int8, shared)
    sizes = model.in_chans, model.image_size, model.num_classes
    if graph:
        compute = start_graph(graph, threads)
    else:
        compute = ClassifierKernel(described, shared.arrays, *sizes, threads)
    return lambda images: torch.from_numpy(compute(images.numpy()))


def _build_int8(model: ModelCase, threads: int):
    return _build_float(model, threads, int8=True)


def _build_timm(model: ModelCase, threads: int):
    return _inferring(_make_timm(model))


def _build_compiled(model: ModelCase, threads: int):
    # For each size of a batch anew, which is the fastest; the round to warm up waits for it.
    return _inferring(torch.compile(_make_timm(model), dynamic=False))


def _make_timm(model: ModelCase) -> nn.Module:
    timm, name = import_timm(), _TIMM.get(model.arch, f"{model.arch}_224")
    if not timm.is_model(name):
        raise UserError(f"--timm: timm has no model of --arch {model.arch!r}")
    sizes = dict(num_classes=model.num_classes)
    if name.endswith("_224"):  # the others are for any
        sizes["img_size"] = model.image_size
    theirs = timm.create_model(name, **sizes).eval()
    theirs.load_state_dict(to_format(model.build().state_dict(), "timm"))
    return _normalising(theirs, model)


def _normalising(network: nn.Module, model: ModelCase) -> nn.Module:
    return nn.Sequential(Normalise(*_scale(model)), network)


def _scale(model: ModelCase) -> tuple[list, list]:
    """Mean and standard deviation of each channel, to normalise the model's images."""
    preset = IMAGENET | IMAGE_PRESETS[model.preset]
    return preset["mean"], preset["std"]


def _inferring(model: nn.Module):
    def compute(images: Tensor) -> Tensor:
        with torch.inference_mode():
            return model(images)

    return compute
