"""The names of published image weights: a table with a row for each family of models.

"official" is the layout of the code that came with the paper, "timm" that of
huggingface/pytorch-image-models.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

LAYOUTS = ("official", "timm")


class Key(NamedTuple):
    """What a layout calls a part of ours.

    Attributes:
        name: # stands for the number of a block.
        leading: Dimensions of size 1 that its tensors begin with and ours do not; negative where
            ours have them.
    """

    name: str
    leading: int = 0


class Part(NamedTuple):
    """A part of a model: how the names of its tensors end, and what each layout calls it."""

    leaves: tuple[str, ...]
    official: Key
    timm: Key


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: What messages call it.
        parts: By our name.
        own: Matches those of our names that tell the family from others with the same stem and the
            same MLP of channels.
        obstacles: What keeps a model of ours from being of the family, by our names that tell it.
    """

    name: str
    parts: dict[str, Part]
    own: re.Pattern
    obstacles: dict[re.Pattern, str]


def _below(ours: str, theirs: str, parts: dict[str, Part]) -> dict[str, Part]:
    """The parts within a module, which all layouts call the same."""
    return {
        f"{ours}.{name}": Part(
            part.leaves, *(Key(f"{theirs}.{key.name}", key.leading) for key in part[1:])
        )
        for name, part in parts.items()
    }


_LINEAR = (".weight", ".bias")
_AFFINE = (".alpha", ".beta")
_WHOLE = ("",)

# The released form: the linear mixer, which has one head, Affine, and average pooling.
_RESMLP_BLOCK = {
    "norm_1": Part(_AFFINE, Key("norm1"), Key("norm1", 2)),
    "mix_tokens.matrix": Part(_LINEAR, Key("attn", -1), Key("linear_tokens", -1)),
    "scale_1.gamma": Part(_WHOLE, Key("gamma_1"), Key("ls1")),
    "norm_2": Part(_AFFINE, Key("norm2"), Key("norm2", 2)),
    "mix_channels.fc1": Part(_LINEAR, Key("mlp.fc1"), Key("mlp_channels.fc1")),
    "mix_channels.fc2": Part(_LINEAR, Key("mlp.fc2"), Key("mlp_channels.fc2")),
    "scale_2.gamma": Part(_WHOLE, Key("gamma_2"), Key("ls2")),
}

FAMILIES = (
    Family(
        name="ResMLP",
        parts={
            "stem.proj": Part(_LINEAR, Key("patch_embed.proj"), Key("stem.proj")),
            **_below("stages.0.blocks.#", "blocks.#", _RESMLP_BLOCK),
            "pool.norm": Part(_AFFINE, Key("norm"), Key("norm", 2)),
            "head": Part(_LINEAR, Key("head"), Key("head")),
        },
        own=re.compile(r".*\.(matrix|norm_\d)\."),
        obstacles={
            re.compile(r".*\.mix_tokens\."): "its token mixer is not 'linear'",
            re.compile(r"(.*blocks\.\d+|pool)\.norm"): "its norm is not 'affine'",
            re.compile(r"pool\."): "its pooling is not 'average'",
            re.compile(r"head\."): "its head is not one linear layer",
        },
    ),
)
