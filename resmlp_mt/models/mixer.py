"""MLP-Mixer (arXiv 2105.01601) as a fairseq model on the shared blocks."""

from dataclasses import dataclass, field

from fairseq.models import register_model
from torch import nn

from resmlp_mt.models.isotropic import IsotropicConfig, IsotropicModel
from resmlp_mt.models.parts import build_mixer, build_norm
from resmlp_mt.models.presets import MIXER_PRESETS, register_presets
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.gates import GatedMLP, SiluGate, open_gate
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import init_lecun


@dataclass
class MixerConfig(IsotropicConfig):
    """The flags of MLP-Mixer."""

    ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden channels of the channel MLP, D_C; 0: 4C"}
    )
    token_ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden width of the MLP over patches, D_S; 0: C/2"}
    )
    gated_mlp: bool = field(
        default=False,
        metadata={"help": "one half of each hidden layer gates the other, as in timm's gMixer"},
    )


class MixerModel(IsotropicModel):
    """LayerNorm, an MLP over patches and one over channels. Arguments as for `IsotropicModel`."""

    def __init__(self, cfg: MixerConfig, in_chans: int, image_size: int, head: nn.Module):
        super().__init__(cfg, in_chans, image_size, head)
        if isinstance(head, nn.Linear):  # of classification
            nn.init.zeros_(head.weight)

    @classmethod
    def build_norm(cls, cfg: MixerConfig) -> nn.Module:
        """LayerNorm with flax's epsilon."""
        return build_norm("layer", cfg.embed_dim, eps=1e-6)

    @classmethod
    def build_block(cls, cfg: MixerConfig, grid: Grid, drop: nn.Module) -> nn.Module:
        """Two residual lines without LayerScale."""
        dim, gated = cfg.embed_dim, cfg.gated_mlp
        hidden_positions = cfg.token_ffn_embed_dim or max(dim // 2, 1)
        hidden_dim = cfg.ffn_embed_dim or 4 * dim
        options = dict(hidden_positions=hidden_positions, gated=gated)
        return ResMLPBlock(
            norm_1=cls.build_norm(cfg),
            mix_tokens=build_mixer("mlp", dim, grid, **options),
            scale_1=nn.Identity(),
            norm_2=cls.build_norm(cfg),
            mix_channels=(
                GatedMLP(dim, hidden_dim, SiluGate()) if gated else ChannelMLP(dim, hidden_dim)
            ),
            scale_2=nn.Identity(),
            drop=drop,
        )

    @staticmethod
    def init_part(part: nn.Module) -> None:
        """Initialise a layer as the released code does, and gates as timm does."""
        init_lecun(part)
        if isinstance(getattr(part, "gate", None), SiluGate):
            open_gate(part.fc1)


register_model("mlp_mixer", dataclass=MixerConfig)(MixerModel)
register_presets("mlp_mixer", MixerConfig, MIXER_PRESETS)
