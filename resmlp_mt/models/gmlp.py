"""gMLP (arXiv 2105.08050) as a fairseq model on the shared parts."""

from dataclasses import dataclass, field

from fairseq.models import register_model
from torch import nn

from resmlp_mt.models.isotropic import IsotropicConfig, IsotropicModel
from resmlp_mt.models.parts import build_norm
from resmlp_mt.models.presets import GMLP_PRESETS, register_presets
from resmlp_mt.nn.gates import GatedMLP, GMLPBlock, SpatialGate
from resmlp_mt.nn.grids import Grid


@dataclass
class GMLPConfig(IsotropicConfig):
    """The flags of gMLP."""

    ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden channels, of which the gate leaves half; 0: 6C"}
    )


class GMLPModel(IsotropicModel):
    """Blocks of one gated MLP each. Arguments as for `IsotropicModel`."""

    @classmethod
    def build_norm(cls, cfg: GMLPConfig) -> nn.Module:
        """LayerNorm."""
        return build_norm("layer", cfg.embed_dim, eps=1e-6)

    @classmethod
    def build_block(cls, cfg: GMLPConfig, grid: Grid, drop: nn.Module) -> nn.Module:
        """One residual line."""
        hidden_dim = cfg.ffn_embed_dim or 6 * cfg.embed_dim
        gate = SpatialGate(hidden_dim // 2, grid[0] * grid[1])
        mlp = GatedMLP(cfg.embed_dim, hidden_dim, gate)
        return GMLPBlock(norm=cls.build_norm(cfg), mix_channels=mlp, drop=drop)


register_model("gmlp", dataclass=GMLPConfig)(GMLPModel)
register_presets("gmlp", GMLPConfig, GMLP_PRESETS)
