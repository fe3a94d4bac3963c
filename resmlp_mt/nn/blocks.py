"""Residual blocks: the encoder's (which images share) and the decoder's.

A block is two residual lines, three in the decoder. It takes a ready token mixer; masks and state
pass through it to the mixer and to the attention.
"""

import torch
from torch import Tensor, nn

from resmlp_mt.nn.attention import SourceAttention
from resmlp_mt.nn.norm import NORMS, LayerScale


class ChannelMLP(nn.Sequential):
    """C GELU(B x) on each position (equation 3). Shape: (B, L, C) -> (B, L, C).

    Args:
        dim: Number of channels C.
        hidden_dim: Number of hidden channels, 4C in the paper.
        dropout: Probability to drop a hidden activation in training.
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__(
            nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim)
        )


class DropPath(nn.Module):
    """Leave a residual branch out, for each sample by chance (stochastic depth, arXiv 1603.09382).

    Args:
        rate: Probability to leave it out in training; what stays is scaled by 1 / (1 - rate).
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"a drop path rate of {rate} is not in [0, 1)")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop whole samples of the batch. Shape: (B, L, C)."""
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(x.size(0), 1, 1, device=x.device) >= self.rate
        return x * kept.to(x.dtype).div_(1 - self.rate)


class ResMLPBlock(nn.Module):
    """x + drop(scale_1 * mix_tokens(norm_1(x))), then the same with mix_channels.

    Args:
        dim: Number of channels C.
        mixer: The token mixer, built for C channels.
        hidden_dim: Hidden channels of the channel MLP.
        norm: A name in NORMS.
        scale_init: Initial LayerScale.
        dropout: Probability to drop an element of a sublayer's output in training.
        activation_dropout: The same for the hidden activations of the channel MLP.
        drop_path: Probability to leave a sublayer out for a sample in training.
    """

    def __init__(
        self,
        dim: int,
        mixer: nn.Module,
        hidden_dim: int,
        norm: str,
        scale_init: float,
        dropout: float = 0.0,
        activation_dropout: float = 0.0,
        drop_path: float = 0.0,
    ):
        super().__init__()
        self.norm_1, self.scale_1 = NORMS[norm](dim), LayerScale(dim, scale_init)
        self.norm_2, self.scale_2 = NORMS[norm](dim), LayerScale(dim, scale_init)
        self.mix_tokens = mixer
        self.mix_channels = ChannelMLP(dim, hidden_dim, activation_dropout)
        self.drop = nn.Dropout(dropout)
        if drop_path:
            self.drop = nn.Sequential(self.drop, DropPath(drop_path))

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mix tokens, then channels. x: (B, L, C); padding_mask: (B, L), True where padded."""
        x = x + self.drop(self.scale_1(self.mix_tokens(self.norm_1(x), padding_mask)))
        return x + self.drop(self.scale_2(self.mix_channels(self.norm_2(x))))


class ResMLPDecoderBlock(ResMLPBlock):
    """The block with attention to the encoder output between its two lines.

    Args:
        dim, mixer, hidden_dim, norm, scale_init, **dropouts: As for `ResMLPBlock`; the mixer must
            be causal.
        attention: Attention to the encoder output.
    """

    def __init__(
        self,
        dim: int,
        mixer: nn.Module,
        attention: SourceAttention,
        hidden_dim: int,
        norm: str,
        scale_init: float,
        dropout: float = 0.0,
        activation_dropout: float = 0.0,
    ):
        super().__init__(dim, mixer, hidden_dim, norm, scale_init, dropout, activation_dropout)
        self.norm_c, self.scale_c = NORMS[norm](dim), LayerScale(dim, scale_init)
        self.attend = attention

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Mix tokens, attend to the memory, mix channels.

        Args:
            x: Features of the new positions. (B, T, C).
            memory: Encoder output. (B, S, memory_dim).
            memory_mask: True where the memory is padded. (B, S).
            state: State of this block, shared by its mixer and its attention; None for a full
                pass.

        Returns:
            Features. (B, T, C).
        """
        # Pads follow the words, so that a causal mixer needs no mask.
        x = x + self.drop(self.scale_1(self.mix_tokens(self.norm_1(x), None, state)))
        x = x + self.drop(self.scale_c(self.attend(self.norm_c(x), memory, memory_mask, state)))
        return x + self.drop(self.scale_2(self.mix_channels(self.norm_2(x))))

    def source_weights(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """The attention weights that `forward` uses for the same arguments, to show. (B, T, S).

        Leaves the state as it is, so it must be called before `forward`.
        """
        seen = None if state is None else dict(state)
        x = x + self.scale_1(self.mix_tokens(self.norm_1(x), None, seen))
        return self.attend.weights(self.norm_c(x), memory, memory_mask)
