"""Images per second of classifiers: unfolded in torch, exported, and timm's where it is installed.

Counted is the network, from uint8 pixels to logits. Decoding and cutting pictures are not. The
weights are random, the same for all but timm's.
"""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor, nn

from resmlp_mt.benchmark.rounds import Rival, peak_memory
from resmlp_mt.data.augment import Normalise
from resmlp_mt.errors import UserError
from resmlp_mt.inference.exported import import_with_onnx
from resmlp_mt.models.image_classification import ResMLPImageModel
from resmlp_mt.tasks.image_classification import IMAGENET_MEAN, IMAGENET_STD

# Our preset: timm's name.
ARCHITECTURES = {"resmlp_s12": "resmlp_12_224", "resmlp_s24": "resmlp_24_224"}
_SIDE, _CLASSES = 224, 1000


@dataclass(frozen=True)
class Case:
    """So many batches of so many images."""

    batch: int
    batches: int


def list_rivals(architecture: str, with_timm: bool, threads: int) -> list[Rival]:
    """The unfolded model first, then the exported ones, then timm's."""
    builders = {"unfolded": _build_plain, "exported": _build_float, "exported int8": _build_int8}
    if with_timm:
        builders["timm"] = _build_timm
    arguments = dict(architecture=architecture, threads=threads)
    return [Rival(name, _Runner, dict(build=b, **arguments)) for name, b in builders.items()]


class _Runner:
    """Runs a model; `build(architecture, threads)` makes it."""

    def __init__(self, build, architecture: str, threads: int):
        self.model = build(architecture, threads)
        images = _draw_images(4)
        expected = _build_plain(architecture, threads)(images)
        self.error = float((self.model(images) - expected).square().mean().sqrt() / expected.std())

    def __call__(self, case: Case) -> dict[str, float]:
        images = _draw_images(case.batch)
        start = time.perf_counter()
        for _ in range(case.batches):
            self.model(images)
        seconds = time.perf_counter() - start
        return {
            "rate": case.batch * case.batches / seconds,
            "error": self.error,
            "memory_mib": peak_memory(),
        }


def _draw_images(count: int) -> Tensor:
    seeded = torch.Generator().manual_seed(1)
    return torch.randint(256, (count, 3, _SIDE, _SIDE), dtype=torch.uint8, generator=seeded)


def _make_model(architecture: str) -> ResMLPImageModel:
    cfg = SimpleNamespace()
    ARCH_CONFIG_REGISTRY[architecture](cfg)
    torch.manual_seed(1)
    return ResMLPImageModel(cfg, 3, _SIDE, nn.Linear(cfg.embed_dim, _CLASSES)).eval()


def _build_plain(architecture: str, threads: int):
    return _normalising(_make_model(architecture))


def _build_float(architecture: str, threads: int, int8: bool = False):
    build = import_with_onnx("resmlp_mt.inference.image_graph").build_classifier
    graph = build(_make_model(architecture), IMAGENET_MEAN, IMAGENET_STD, int8)
    session = import_with_onnx("resmlp_mt.inference.search").start(graph, threads)
    return lambda images: torch.from_numpy(session.run(None, {"pixels": images.numpy()})[0])


def _build_int8(architecture: str, threads: int):
    return _build_float(architecture, threads, int8=True)


def _build_timm(architecture: str, threads: int):
    try:
        import timm
    except ImportError as error:  # without torchvision it is installed, and does not import
        raise UserError(f"timm cannot be imported: {error}") from None
    return _normalising(timm.create_model(ARCHITECTURES[architecture]).eval())


def _normalising(model: nn.Module):
    normalise = Normalise(IMAGENET_MEAN, IMAGENET_STD)

    def compute(images: Tensor) -> Tensor:
        with torch.inference_mode():
            return model(normalise(images))

    return compute
