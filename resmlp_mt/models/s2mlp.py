"""S2-MLP (arXiv 2106.07477) as a fairseq model on the shared blocks."""

from dataclasses import dataclass, field

from fairseq.models import register_model
from torch import nn

from resmlp_mt.models.isotropic import IsotropicConfig, IsotropicModel
from resmlp_mt.models.parts import build_norm
from resmlp_mt.models.presets import S2MLP_PRESETS, register_presets
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import PatchEmbedding
from resmlp_mt.nn.pooling import AveragePooling
from resmlp_mt.nn.shift import ShiftMLP


@dataclass
class S2MLPConfig(IsotropicConfig):
    """The flags of S2-MLP."""

    ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden channels of the channel MLP; 0: 4C"}
    )


class S2MLPModel(IsotropicModel):
    """Patches that speak with their neighbours by shifts. Arguments as for `IsotropicModel`.

    The patches are normalised where they are embedded, and not before the mean.
    """

    @classmethod
    def build_norm(cls, cfg: S2MLPConfig) -> nn.Module:
        """LayerNorm."""
        return build_norm("layer", cfg.embed_dim)

    @classmethod
    def build_stem(cls, cfg: S2MLPConfig, in_chans: int) -> nn.Module:
        """Patches, normalised."""
        return PatchEmbedding(in_chans, cfg.embed_dim, cfg.patch_size, cls.build_norm(cfg))

    @classmethod
    def build_block(cls, cfg: S2MLPConfig, grid: Grid, drop: nn.Module) -> nn.Module:
        """Two residual lines without LayerScale."""
        dim = cfg.embed_dim
        return ResMLPBlock(
            norm_1=cls.build_norm(cfg),
            mix_tokens=ShiftMLP(dim, grid[1]),
            scale_1=nn.Identity(),
            norm_2=cls.build_norm(cfg),
            mix_channels=ChannelMLP(dim, cfg.ffn_embed_dim or 4 * dim),
            scale_2=nn.Identity(),
            drop=drop,
        )

    @classmethod
    def build_pool(cls, cfg: S2MLPConfig, grid: Grid) -> nn.Module:
        """The mean alone."""
        return AveragePooling(nn.Identity())


register_model("s2mlp", dataclass=S2MLPConfig)(S2MLPModel)
register_presets("s2mlp", S2MLPConfig, S2MLP_PRESETS)
