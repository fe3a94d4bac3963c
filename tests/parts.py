"""Blocks from the tables of the models, as tests of one layer need them."""

from torch import nn

from resmlp_mt.models.parts import build_mixer, build_norm
from resmlp_mt.nn.attention import SourceAttention
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock, ResMLPDecoderBlock
from resmlp_mt.nn.norm import LayerScale


def _lines(names: str, norm: str, dim: int) -> dict[str, nn.Module]:
    """A norm and a scale for each residual line."""
    norms = {f"norm_{name}": build_norm(norm, dim) for name in names}
    return norms | {f"scale_{name}": LayerScale(dim, 0.2) for name in names}


def encoder_block(
    mixer, norm, dim, positions, heads, hidden_dim=20, activation_dropout=0.0, drop=None
):
    return ResMLPBlock(
        mix_tokens=build_mixer(mixer, dim, positions, heads=heads),
        mix_channels=ChannelMLP(dim, hidden_dim, activation_dropout),
        drop=drop or nn.Identity(),
        **_lines("12", norm, dim),
    )


def decoder_block(
    mixer,
    norm,
    dim,
    memory_dim,
    positions,
    heads,
    hidden_dim=20,
    attention_dropout=0.0,
    activation_dropout=0.0,
    drop=None,
):
    return ResMLPDecoderBlock(
        mix_tokens=build_mixer(mixer, dim, positions, heads=heads, causal=True),
        attend=SourceAttention(dim, memory_dim, 4, attention_dropout),
        mix_channels=ChannelMLP(dim, hidden_dim, activation_dropout),
        drop=drop or nn.Identity(),
        **_lines("1c2", norm, dim),
    )
