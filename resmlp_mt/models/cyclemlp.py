"""CycleMLP (arXiv 2107.10224) as a fairseq model on the shared blocks."""

from collections import OrderedDict
from dataclasses import dataclass

from fairseq.models import register_model
from torch import nn

from resmlp_mt.models.parts import build_norm
from resmlp_mt.models.presets import CYCLEMLP_PRESETS, register_presets
from resmlp_mt.models.pyramid import RatioConfig, RatioModel
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.cycle import CycleMLP
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import MoveChannels
from resmlp_mt.nn.pooling import AveragePooling


@dataclass
class CycleMLPConfig(RatioConfig):
    """The flags of CycleMLP."""


class CycleMLPModel(RatioModel):
    """LayerNorm, three staggered branches, no LayerScale. Arguments as for `PyramidModel`.

    Features are (B, rows, columns, C).
    """

    @classmethod
    def build_stem(cls, cfg: CycleMLPConfig, in_chans: int) -> nn.Module:
        """A convolution, whose channels become the last dimension."""
        conv = super().build_stem(cfg, in_chans)
        return nn.Sequential(OrderedDict(conv=conv, move=MoveChannels(1, 3)))

    @classmethod
    def build_downsample(cls, cfg: CycleMLPConfig, stage: int) -> nn.Module:
        """A convolution between stages; the channels stay the last dimension."""
        conv = super().build_downsample(cfg, stage)
        moves = MoveChannels(3, 1), MoveChannels(1, 3)
        return nn.Sequential(OrderedDict(first=moves[0], conv=conv, last=moves[1]))

    @classmethod
    def build_blocks(
        cls, cfg: CycleMLPConfig, stage: int, grid: Grid, drops: list[nn.Module]
    ) -> list[nn.Module]:
        """Blocks of two residual lines without LayerScale."""
        dim, hidden_dim = cfg.embed_dim[stage], cls.hidden_dim(cfg, stage)
        return [
            ResMLPBlock(
                norm_1=build_norm("layer", dim),
                mix_tokens=CycleMLP(dim),
                scale_1=nn.Identity(),
                norm_2=build_norm("layer", dim),
                mix_channels=ChannelMLP(dim, hidden_dim),
                scale_2=nn.Identity(),
                drop=drop,
            )
            for drop in drops
        ]

    @classmethod
    def build_pool(cls, cfg: CycleMLPConfig) -> nn.Module:
        """The mean of the normalised positions."""
        return AveragePooling(build_norm("layer", cfg.embed_dim[-1]))


register_model("cyclemlp", dataclass=CycleMLPConfig)(CycleMLPModel)
register_presets("cyclemlp", CycleMLPConfig, CYCLEMLP_PRESETS)
