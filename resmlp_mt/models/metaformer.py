"""MetaFormer (arXiv 2111.11418) as a fairseq model: PoolFormer and AdaFC, by their token mixer."""

from dataclasses import dataclass, field
from functools import partial

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.parts import MAP_MIXERS, build_mixer, build_norm
from resmlp_mt.models.presets import ADAFC_PRESETS, POOLFORMER_PRESETS, register_presets
from resmlp_mt.models.pyramid import RatioConfig, RatioModel
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.map_mixers import AxisWeights
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.pooling import MapPooling

_POINTWISE = partial(nn.Conv2d, kernel_size=1)


@dataclass
class MetaFormerConfig(RatioConfig):
    """The flags of PoolFormer and of AdaFC."""

    token_mixer: ChoiceEnum(list(MAP_MIXERS)) = field(
        default="pooling",
        metadata={"help": "what mixes positions: fc is a linear layer over channels, and nothing"},
    )
    layer_scale_init: float = field(
        default=1e-5, metadata={"help": "LayerScale that every sublayer's output starts with"}
    )
    freeze_mixing: bool = field(
        default=False, metadata={"help": "leave AdaFC's weights between positions as they start"}
    )


class MetaFormerModel(RatioModel):
    """GroupNorm of one group, a token mixer, LayerScale. Arguments as for `PyramidModel`.

    Features are (B, C, rows, columns).
    """

    @classmethod
    def check(cls, cfg: MetaFormerConfig) -> None:
        """As `PyramidModel`."""
        super().check(cfg)
        if cfg.freeze_mixing and cfg.token_mixer != "adafc":
            raise UserError(
                f"--freeze-mixing: --token-mixer {cfg.token_mixer} has no weights between "
                "positions; it is for adafc"
            )

    @classmethod
    def build_blocks(
        cls, cfg: MetaFormerConfig, stage: int, grid: Grid, drops: list[nn.Module]
    ) -> list[nn.Module]:
        """Blocks of two residual lines, each with LayerScale."""
        dim, hidden_dim = cfg.embed_dim[stage], cls.hidden_dim(cfg, stage)
        norm = partial(build_norm, "group", dim)
        scale = partial(LayerScale, dim, cfg.layer_scale_init, trailing=2)
        return [
            ResMLPBlock(
                norm_1=norm(),
                mix_tokens=build_mixer(str(cfg.token_mixer), dim, grid),
                scale_1=scale(),
                norm_2=norm(),
                mix_channels=ChannelMLP(dim, hidden_dim, linear=_POINTWISE),
                scale_2=scale(),
                drop=drop,
            )
            for drop in drops
        ]

    @classmethod
    def build_shared(cls, cfg: MetaFormerConfig, stage: int, grid: Grid) -> nn.Module | None:
        """AdaFC's W."""
        if cfg.token_mixer == "adafc":
            return AxisWeights(cfg.embed_dim[stage], grid, cfg.freeze_mixing)
        return None

    @classmethod
    def build_pool(cls, cfg: MetaFormerConfig) -> nn.Module:
        """The mean, and LayerNorm after it, as timm has it."""
        return MapPooling(build_norm("layer", cfg.embed_dim[-1], eps=1e-6))


register_model("metaformer", dataclass=MetaFormerConfig)(MetaFormerModel)
register_presets("metaformer", MetaFormerConfig, POOLFORMER_PRESETS | ADAFC_PRESETS)
