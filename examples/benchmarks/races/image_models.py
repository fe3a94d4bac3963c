"""The classifiers that are raced: presets with random weights, and what they cost on paper."""

import argparse
import shlex
from dataclasses import dataclass

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from resmlp_mt.errors import UserError
from resmlp_mt.models.images import ImageModel
from resmlp_mt.models.presets import IMAGE_PRESETS
from resmlp_mt.nn.patches import init_linear


@dataclass(frozen=True)
class ModelCase:
    """A classifier.

    Attributes:
        arch: A preset. Flags of its model may follow it, as in "resmlp_s12 --token-mixer mlp".
        image_size: Side of the images in pixels.
        num_classes: K.
    """

    arch: str
    image_size: int = 224
    num_classes: int = 1000

    @property
    def preset(self) -> str:
        """The preset alone.

        Raises:
            UserError: If a quotation does not end.
        """
        return _split(self.arch)[0]

    def build(self) -> ImageModel:
        """The model, its random weights the same each time.

        Raises:
            UserError: If there is no such preset or flag, or the model cannot be built so.
        """
        cfg = _read_flags(self.arch)
        ARCH_CONFIG_REGISTRY[self.preset](cfg)
        torch.manual_seed(1)
        model = ARCH_MODEL_REGISTRY[self.preset].build_model(cfg, self).eval()
        # Some begin with a head of zeros, which would answer alike whatever comes before it.
        init_linear(model.head)
        return model

    # What a model asks of its task.
    in_chans = 3

    def build_head(self, dim: int) -> nn.Module:
        """(B, C = dim) -> (B, K)."""
        return nn.Linear(dim, self.num_classes)

    def draw_images(self, count: int) -> Tensor:
        """Random pixels, the same each time. (count, 3, image_size, image_size), uint8."""
        seeded = torch.Generator().manual_seed(1)
        shape = count, self.in_chans, self.image_size, self.image_size
        return torch.randint(256, shape, dtype=torch.uint8, generator=seeded)

    def count(self) -> dict[str, int]:
        """Its parameters, and the multiplications with additions that one image takes.

        The latter are those of products and convolutions, as published figures have them.

        Raises:
            UserError: As `build`.
        """
        with torch.device("meta"):
            model, image = self.build(), torch.empty(1, 3, self.image_size, self.image_size)
        with FlopCounterMode(display=False) as counter:
            model.requires_grad_(False)(image)
        return {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "multiply_adds": counter.get_total_flops() // 2,  # it counts both
        }


def usual_size(arch: str) -> int:
    """The side of the images of a preset, in pixels. Flags of its model may follow it.

    Raises:
        UserError: If there is no such preset.
    """
    return _find_preset(_split(arch)[0])["image_size"]


def _split(arch: str) -> list[str]:
    """A preset and the words behind it, as a shell would part them."""
    try:
        return shlex.split(arch) or [""]
    except ValueError as error:
        raise UserError(f"--arch {arch}: {error}; mend its quotes") from None


def _read_flags(arch: str) -> argparse.Namespace:
    preset, *words = _split(arch)
    _find_preset(preset)
    parser = _Parser(argument_default=argparse.SUPPRESS, add_help=False, allow_abbrev=False)
    ARCH_MODEL_REGISTRY[preset].add_args(parser)
    # As in a trained model, every block takes part in the logits, and in their error.
    return parser.parse_args(words, argparse.Namespace(layer_scale_init=0.1))


def _find_preset(name: str) -> dict:
    if name not in IMAGE_PRESETS:
        known = ", ".join(IMAGE_PRESETS)
        raise UserError(f"--arch {name}: no preset for images; there are {known}")
    return IMAGE_PRESETS[name]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise UserError(f"--arch: {message}")
