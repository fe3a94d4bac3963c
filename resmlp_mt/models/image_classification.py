"""ResMLP for images (arXiv 2105.03404, section 2) as a fairseq model on the shared blocks."""

from dataclasses import dataclass, field
from functools import partial

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import nn

from resmlp_mt.models.isotropic import IsotropicConfig, IsotropicModel
from resmlp_mt.models.parts import GRID_MIXERS, SEQUENCE_NORMS, build_mixer, build_norm
from resmlp_mt.models.presets import RESMLP_PRESETS, register_presets
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.pooling import Aggregate, AveragePooling, ClassMLP, ClassMLPLayer

POOLINGS = ("average", "class-mlp")


@dataclass
class ResMLPImageConfig(IsotropicConfig):
    """The flags of ResMLP for images."""

    ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden channels of the channel MLP; 0: 4C, as in the paper"}
    )
    token_mixer: ChoiceEnum(list(GRID_MIXERS)) = field(
        default="linear",
        metadata={"help": "what mixes patches: the paper's matrix is 'linear'"},
    )
    norm: ChoiceEnum(list(SEQUENCE_NORMS)) = field(
        default="affine", metadata={"help": "norm before every sublayer and the head"}
    )
    pooling: ChoiceEnum(list(POOLINGS)) = field(
        default="average", metadata={"help": "how the patches become one vector"}
    )
    layer_scale_init: float = field(
        default=0.0,
        metadata={
            "help": "LayerScale that every sublayer's output starts with; 0: by depth, 0.1 up to "
            "18 layers, 1e-5 up to 24, 1e-6 beyond"
        },
    )


class ResMLPImageModel(IsotropicModel):
    """ResMLP for images; by default the paper's S12. Arguments as for `IsotropicModel`."""

    @classmethod
    def build_norm(cls, cfg: ResMLPImageConfig) -> nn.Module:
        """Aff, or LayerNorm."""
        return build_norm(str(cfg.norm), cfg.embed_dim)

    @classmethod
    def build_block(cls, cfg: ResMLPImageConfig, grid: Grid, drop: nn.Module) -> nn.Module:
        """Two residual lines, each with LayerScale."""
        norm, scale, mlp = _sublayers(cls, cfg)
        return ResMLPBlock(
            norm_1=norm(),
            mix_tokens=build_mixer(str(cfg.token_mixer), cfg.embed_dim, grid),
            scale_1=scale(),
            norm_2=norm(),
            mix_channels=mlp(),
            scale_2=scale(),
            drop=drop,
        )

    @classmethod
    def build_pool(cls, cfg: ResMLPImageConfig, grid: Grid) -> nn.Module:
        """The mean, or Class-MLP of two layers."""
        norm, scale, mlp = _sublayers(cls, cfg)
        if cfg.pooling != "class-mlp":
            return AveragePooling(norm())
        layers = (
            ClassMLPLayer(
                norm_1=norm(),
                aggregate=Aggregate(grid[0] * grid[1]),
                scale_1=scale(),
                norm_2=norm(),
                mix_channels=mlp(),
                scale_2=scale(),
            )
            for _ in range(2)
        )
        return ClassMLP(cfg.embed_dim, layers, norm())


def _sublayers(family: type[ResMLPImageModel], cfg: ResMLPImageConfig) -> tuple[partial, ...]:
    """Builders of a norm, a LayerScale and a channel MLP."""
    dim = cfg.embed_dim
    return (
        partial(family.build_norm, cfg),
        partial(LayerScale, dim, cfg.layer_scale_init or _scale_by_depth(cfg.layers)),
        partial(ChannelMLP, dim, cfg.ffn_embed_dim or 4 * dim),
    )


def _scale_by_depth(layers: int) -> float:
    if layers <= 18:
        return 0.1
    return 1e-5 if layers <= 24 else 1e-6


register_model("resmlp_image", dataclass=ResMLPImageConfig)(ResMLPImageModel)
register_presets("resmlp_image", ResMLPImageConfig, RESMLP_PRESETS)
