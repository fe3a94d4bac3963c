"""Images per second of classifiers: unfolded in torch, exported, and timm's, plain and compiled.

Counted is the network, from uint8 pixels to logits. Decoding and cutting pictures are not. The
weights are random, the same for all.
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
from resmlp_mt.extras import import_timm, import_with_onnx
from resmlp_mt.models.image_classification import ResMLPImageModel
from resmlp_mt.models.presets import IMAGENET
from resmlp_mt.models.released import to_format

# Our preset: timm's name.
ARCHITECTURES = {"resmlp_s12": "resmlp_12_224", "resmlp_s24": "resmlp_24_224"}
_SIDE, _CLASSES = 224, 1000


@dataclass(frozen=True)
class Case:
    """So many batches of so many images."""

    batch: int
    batches: int


def list_rivals(architecture: str, with_timm: bool, threads: int) -> list[Rival]:
    """timm's model first where it takes part, else the unfolded one; the exported ones last.

    Raises:
        UserError: If timm shall take part and is not there.
    """
    if with_timm and import_timm() is None:
        raise UserError("--timm: timm is not installed: pip install timm")
    builders = {"timm": _build_timm, "timm compiled": _build_compiled} if with_timm else {}
    builders |= {"unfolded": _build_plain, "exported": _build_float, "exported int8": _build_int8}
    arguments = dict(architecture=architecture, threads=threads)
    return [Rival(name, _Runner, dict(build=b, **arguments)) for name, b in builders.items()]


class _Runner:
    """Runs a model; `build(architecture, threads)` makes it."""

    def __init__(self, build, architecture: str, threads: int):
        self.model = build(architecture, threads)
        images = draw_images(4)
        expected = _build_plain(architecture, threads)(images)
        self.error = float((self.model(images) - expected).square().mean().sqrt() / expected.std())

    def __call__(self, case: Case) -> dict[str, float]:
        images = draw_images(case.batch)
        start = time.perf_counter()
        for _ in range(case.batches):
            self.model(images)
        seconds = time.perf_counter() - start
        return {
            "rate": case.batch * case.batches / seconds,
            "error": self.error,
            "memory_mib": peak_memory(),
        }


def draw_images(count: int) -> Tensor:
    """Random pixels, the same each time. (count, 3, 224, 224), uint8."""
    seeded = torch.Generator().manual_seed(1)
    return torch.randint(256, (count, 3, _SIDE, _SIDE), dtype=torch.uint8, generator=seeded)


def make_model(architecture: str) -> ResMLPImageModel:
    """A model of that preset, its random weights the same each time."""
    # As in a trained model, every block takes part in the logits, and in their error.
    cfg = SimpleNamespace(layer_scale_init=0.1)
    ARCH_CONFIG_REGISTRY[architecture](cfg)
    torch.manual_seed(1)
    return ResMLPImageModel(cfg, 3, _SIDE, nn.Linear(cfg.embed_dim, _CLASSES)).eval()


def _build_plain(architecture: str, threads: int):
    return _inferring(_normalising(make_model(architecture)))


def _build_float(architecture: str, threads: int, int8: bool = False):
    build = import_with_onnx("resmlp_mt.export.image_graph").build_classifier
    graph = build(make_model(architecture), IMAGENET["mean"], IMAGENET["std"], int8)
    session = import_with_onnx("resmlp_mt.inference.onnx_search").start(graph, threads)
    return lambda images: torch.from_numpy(session.run(None, {"pixels": images.numpy()})[0])


def _build_int8(architecture: str, threads: int):
    return _build_float(architecture, threads, int8=True)


def _build_timm(architecture: str, threads: int):
    return _inferring(_make_timm(architecture))


def _build_compiled(architecture: str, threads: int):
    # For each size of a batch anew, which is the fastest; the round to warm up waits for it.
    return _inferring(torch.compile(_make_timm(architecture), dynamic=False))


def _make_timm(architecture: str) -> nn.Module:
    model = import_timm().create_model(ARCHITECTURES[architecture]).eval()
    model.load_state_dict(to_format(make_model(architecture).state_dict(), "timm"))
    return _normalising(model)


def _normalising(model: nn.Module) -> nn.Module:
    return nn.Sequential(Normalise(IMAGENET["mean"], IMAGENET["std"]), model)


def _inferring(model: nn.Module):
    def compute(images: Tensor) -> Tensor:
        with torch.inference_mode():
            return model(images)

    return compute
