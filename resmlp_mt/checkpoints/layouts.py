"""The names of published image weights: a table with a row for each family of models.

"official" is the layout of the code that came with the paper, "timm" that of
huggingface/pytorch-image-models. The code of some papers is not torch's: those have the latter
alone.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from resmlp_mt.models.presets import (
    BIT_PRESETS,
    GMLP_PRESETS,
    MIXER_PRESETS,
    POOLFORMER_PRESETS,
    RESMLP_PRESETS,
)

LAYOUTS = ("official", "timm")


class Key(NamedTuple):
    """The name of a part of ours in a layout.

    Attributes:
        name: @ stands for the number of a stage, + for that of a later one than the first, # for
            that of a block in it.
        leading: Dimensions of size 1 that its tensors begin with and ours do not; negative where
            ours have them.
        trailing: The same of those that they end with.
    """

    name: str
    leading: int = 0
    trailing: int = 0


class Part(NamedTuple):
    """A part of a model: how the names of its tensors end, and what each layout calls it."""

    leaves: tuple[str, ...]
    timm: Key
    official: Key | None = None


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: In messages.
        presets: Its sizes.
        parts: By our name.
        marks: Each matches one of our names of a model of the family; the first family of FAMILIES
            whose marks all have a match is the model's.
        own: Matches those of our names that tell published weights of the family from others with
            the same stem and the same MLP of channels.
        positions: How our name of a tensor ends that has the N positions first; empty where none
            has.
        stem: Our name of the kernel that makes patches of pixels.
        channels: How our name of a tensor of a stage ends that has its channels first; empty where
            there is one stage, whose channels are the stem's.
        obstacles: By patterns of our names: why a model that has such a name is not of the family.
    """

    name: str
    presets: dict[str, dict]
    parts: dict[str, Part]
    marks: tuple[re.Pattern, ...]
    own: re.Pattern
    positions: str = ""
    stem: str = "stem.proj.weight"
    channels: str = ""
    obstacles: dict[re.Pattern, str] = field(default_factory=dict)

    @property
    def layouts(self) -> list[str]:
        """The published layouts of the family, of LAYOUTS."""
        return [name for name in LAYOUTS if all(getattr(p, name) for p in self.parts.values())]


def _below(ours: str, official: str, timm: str, parts: dict[str, Part]) -> dict[str, Part]:
    """The parts within a module."""
    return {
        f"{ours}.{name}": Part(
            part.leaves,
            part.timm._replace(name=f"{timm}.{part.timm.name}"),
            part.official and part.official._replace(name=f"{official}.{part.official.name}"),
        )
        for name, part in parts.items()
    }


_BLOCKS = ("stages.0.blocks.#", "blocks.#", "blocks.#")
_STAGES = ("stages.@.blocks.#",) * 3
_LINEAR = (".weight", ".bias")
_AFFINE = (".alpha", ".beta")
_WHOLE = ("",)

# The released form: the linear mixer, which has one head, Affine, and average pooling.
_RESMLP_BLOCK = {
    "norm_1": Part(_AFFINE, Key("norm1", 2), Key("norm1")),
    "mix_tokens.matrix": Part(_LINEAR, Key("linear_tokens", -1), Key("attn", -1)),
    "scale_1.gamma": Part(_WHOLE, Key("ls1"), Key("gamma_1")),
    "norm_2": Part(_AFFINE, Key("norm2", 2), Key("norm2")),
    "mix_channels.fc1": Part(_LINEAR, Key("mlp_channels.fc1"), Key("mlp.fc1")),
    "mix_channels.fc2": Part(_LINEAR, Key("mlp_channels.fc2"), Key("mlp.fc2")),
    "scale_2.gamma": Part(_WHOLE, Key("ls2"), Key("gamma_2")),
}
_MIXER_BLOCK = {
    "norm_1": Part(_LINEAR, Key("norm1")),
    "mix_tokens.fc1": Part(_LINEAR, Key("mlp_tokens.fc1")),
    "mix_tokens.fc2": Part(_LINEAR, Key("mlp_tokens.fc2")),
    "norm_2": Part(_LINEAR, Key("norm2")),
    "mix_channels.fc1": Part(_LINEAR, Key("mlp_channels.fc1")),
    "mix_channels.fc2": Part(_LINEAR, Key("mlp_channels.fc2")),
}
_POOLFORMER_BLOCK = {
    "norm_1": Part(_LINEAR, Key("norm1")),
    "scale_1.gamma": Part(_WHOLE, Key("layer_scale1.scale")),
    "norm_2": Part(_LINEAR, Key("norm2")),
    "mix_channels.fc1": Part(_LINEAR, Key("mlp.fc1")),
    "mix_channels.fc2": Part(_LINEAR, Key("mlp.fc2")),
    "scale_2.gamma": Part(_WHOLE, Key("layer_scale2.scale")),
}
_KERNEL = (".weight",)
_BIT_BLOCK = {
    f"{kind}_{number}": Part(leaves, Key(f"{kind}{number}"))
    for number in (1, 2, 3)
    for kind, leaves in (("norm", _LINEAR), ("conv", _KERNEL))
}
_GMLP_BLOCK = {
    "norm": Part(_LINEAR, Key("norm")),
    "mix_channels.fc1": Part(_LINEAR, Key("mlp_channels.fc1")),
    "mix_channels.gate.norm": Part(_LINEAR, Key("mlp_channels.gate.norm")),
    "mix_channels.gate.mix_tokens.matrix": Part(_LINEAR, Key("mlp_channels.gate.proj", -1)),
    "mix_channels.fc2": Part(_LINEAR, Key("mlp_channels.fc2")),
}


def _timm_alone(block: dict[str, Part]) -> dict[str, Part]:
    """The parts of a model with LayerNorm, of which timm alone has weights for torch."""
    return {
        "stem.proj": Part(_LINEAR, Key("stem.proj")),
        **_below(*_BLOCKS, block),
        "pool.norm": Part(_LINEAR, Key("norm")),
        "head": Part(_LINEAR, Key("head")),
    }


_PATCHES = re.compile(r"stem\.proj\.")
_HEAD = {re.compile(r"head\."): "its head is not one linear layer"}

FAMILIES = (
    Family(
        name="ResMLP",
        presets=RESMLP_PRESETS,
        parts={
            "stem.proj": Part(_LINEAR, Key("stem.proj"), Key("patch_embed.proj")),
            **_below(*_BLOCKS, _RESMLP_BLOCK),
            "pool.norm": Part(_AFFINE, Key("norm", 2), Key("norm")),
            "head": Part(_LINEAR, Key("head"), Key("head")),
        },
        marks=(_PATCHES, re.compile(r"stages\.0\.blocks\.\d+\.scale_1\.")),
        own=re.compile(r".*\.(matrix|norm_\d)\."),
        positions="mix_tokens.matrix.weight",
        obstacles={
            re.compile(r".*\.mix_tokens\."): "its token mixer is not 'linear'",
            re.compile(r"(.*blocks\.\d+|pool)\.norm"): "its norm is not 'affine'",
            re.compile(r"pool\."): "its pooling is not 'average'",
            **_HEAD,
        },
    ),
    Family(
        name="MLP-Mixer",
        presets=MIXER_PRESETS,
        parts=_timm_alone(_MIXER_BLOCK),
        marks=(_PATCHES, re.compile(r"stages\.0\.blocks\.\d+\.mix_tokens\.fc1\.")),
        own=re.compile(r".*\.mix_tokens\."),
        positions="mix_tokens.fc2.weight",
        obstacles=_HEAD,
    ),
    Family(
        name="gMLP",
        presets=GMLP_PRESETS,
        parts=_timm_alone(_GMLP_BLOCK),
        marks=(_PATCHES, re.compile(r"stages\.0\.blocks\.\d+\.mix_channels\.gate\.")),
        own=re.compile(r".*\.gate\."),
        positions="gate.mix_tokens.matrix.weight",
        obstacles=_HEAD,
    ),
    Family(
        name="PoolFormer",
        presets=POOLFORMER_PRESETS,
        parts={
            "stem": Part(_LINEAR, Key("stem.conv")),
            "stages.+.downsample": Part(_LINEAR, Key("stages.+.downsample.conv")),
            **_below(*_STAGES, _POOLFORMER_BLOCK),
            "pool.norm": Part(_LINEAR, Key("head.norm")),
            "head": Part(_LINEAR, Key("head.fc")),
        },
        marks=(
            re.compile(r"stem\.(weight|bias)$"),
            re.compile(r"stages\.0\.blocks\.\d+\.scale_1\."),
        ),
        own=re.compile(r".*\.scale_1\."),
        stem="stem.weight",
        channels="blocks.0.mix_channels.fc2.weight",
        obstacles={re.compile(r".*\.(mix_tokens|shared)\."): "its token mixer is not 'pooling'"}
        | _HEAD,
    ),
    Family(
        name="BiT",
        presets=BIT_PRESETS,
        parts={
            "stem.conv": Part(_KERNEL, Key("stem.conv")),
            **_below(*_STAGES, _BIT_BLOCK),
            "stages.@.blocks.0.shortcut": Part(_KERNEL, Key("stages.@.blocks.0.downsample.conv")),
            "pool.norm": Part(_LINEAR, Key("norm")),
            "head.weight": Part(_WHOLE, Key("head.fc.weight", trailing=2)),
            "head.bias": Part(_WHOLE, Key("head.fc.bias")),
        },
        marks=(re.compile(r"stages\.0\.blocks\.0\.conv_1\."),),
        own=re.compile(r".*\.conv_2\."),
        stem="stem.conv.weight",
        channels="blocks.0.conv_3.weight",
        obstacles=_HEAD,
    ),
)
