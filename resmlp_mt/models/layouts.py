"""How weights of images are named where they are published: a table, a row a family of models.

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


_LINEAR = (".weight", ".bias")
_AFFINE = (".alpha", ".beta")
_WHOLE = ("",)

FAMILIES = (
    # The released form: the linear mixer, which has one head, Affine, and average pooling.
    Family(
        "ResMLP",
        {
            "embed.proj": Part(_LINEAR, Key("patch_embed.proj"), Key("stem.proj")),
            "blocks.#.norm_1": Part(_AFFINE, Key("blocks.#.norm1"), Key("blocks.#.norm1", 2)),
            "blocks.#.mix_tokens.matrix": Part(
                _LINEAR, Key("blocks.#.attn", -1), Key("blocks.#.linear_tokens", -1)
            ),
            "blocks.#.scale_1.gamma": Part(_WHOLE, Key("blocks.#.gamma_1"), Key("blocks.#.ls1")),
            "blocks.#.norm_2": Part(_AFFINE, Key("blocks.#.norm2"), Key("blocks.#.norm2", 2)),
            "blocks.#.mix_channels.fc1": Part(
                _LINEAR, Key("blocks.#.mlp.fc1"), Key("blocks.#.mlp_channels.fc1")
            ),
            "blocks.#.mix_channels.fc2": Part(
                _LINEAR, Key("blocks.#.mlp.fc2"), Key("blocks.#.mlp_channels.fc2")
            ),
            "blocks.#.scale_2.gamma": Part(_WHOLE, Key("blocks.#.gamma_2"), Key("blocks.#.ls2")),
            "pool.norm": Part(_AFFINE, Key("norm"), Key("norm", 2)),
            "head": Part(_LINEAR, Key("head"), Key("head")),
        },
        own=re.compile(r".*\.(matrix|norm_\d)\."),
        obstacles={
            re.compile(r"blocks\.\d+\.mix_tokens\."): "its token mixer is not 'linear'",
            re.compile(r"(blocks\.\d+|pool)\.norm"): "its norm is not 'affine'",
            re.compile(r"pool\."): "its pooling is not 'average'",
            re.compile(r"head\."): "its head is not one linear layer",
        },
    ),
)
