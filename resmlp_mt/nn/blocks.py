"""Residual blocks: the encoder's, which images share, and the decoder's.

A block is two residual lines, three in the decoder. Its parts are handed in ready made, with
`nn.Identity()` for what a model does not have. They also decide which shape a block works on:
(B, L, C), or (B, C, rows, columns).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.recompute import recompute

# The state of a block of the decoder between steps: a part for its mixer, and one for its
# attention. Only the module that a part belongs to knows what is in it.
BlockState = dict[str, dict[str, Tensor]]


class ChannelMLP(nn.Module):
    """fc2(GELU(fc1(x))) on each position (equation 3).

    Args:
        dim: Number of channels C.
        hidden_dim: Number of hidden channels, 4C in the paper.
        dropout: Probability to drop a hidden activation in training.
        linear: linear(in, out) builds the two layers. `nn.Linear` works on (..., C), a convolution
            of size 1 on (B, C, rows, columns).
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        dropout: float = 0.0,
        linear: Callable[[int, int], nn.Module] = nn.Linear,
    ):
        super().__init__()
        self.fc1 = linear(dim, hidden_dim)
        self.activate = nn.GELU()
        self.drop = Dropout(dropout)
        self.fc2 = linear(hidden_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Mix channels; the shape stays."""
        hidden = self.fc1(x)
        active = self.drop(self.activate(hidden))
        if torch.compiler.is_compiling():  # it decides by itself what to keep
            return self.fc2(active)
        # The hidden layer is the widest of a block. The backward pass of GELU needs what came in,
        # so what came out need not be kept too.
        node = active.grad_fn
        if node is None or node.name() != "GeluBackward0":
            return self.fc2(active)
        with recompute(active, partial(self.activate, hidden.detach())):
            return self.fc2(active)


class DropPath(nn.Module):
    """Leave a residual branch out, for each sample by chance (stochastic depth, arXiv 1603.09382).

    Args:
        rate: Probability to leave it out in training; what stays is scaled by 1 / (1 - rate).
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise UserError(f"a drop path rate of {rate} is not in [0, 1)")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop whole samples of the batch. Shape: (B, ...)."""
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(len(x), *[1] * (x.dim() - 1), device=x.device) >= self.rate
        return x * kept.to(x.dtype).div_(1 - self.rate)


class ResMLPBlock(nn.Module):
    """Mix tokens, then channels.

        x = x + drop(scale_1(mix_tokens(norm_1(x))))
        x = x + drop(scale_2(mix_channels(norm_2(x))))

    Args:
        norm_1, mix_tokens, scale_1: The first line. The mixer may take more than x.
        norm_2, mix_channels, scale_2: The second line.
        drop: The dropout of both lines. It has no weights.
    """

    def __init__(
        self,
        *,
        norm_1: nn.Module,
        mix_tokens: nn.Module,
        scale_1: nn.Module,
        norm_2: nn.Module,
        mix_channels: nn.Module,
        scale_2: nn.Module,
        drop: nn.Module,
    ):
        super().__init__()
        # Checkpoints keep the optimizer's state in the order of the parameters. Keep this order.
        self.norm_1, self.scale_1 = norm_1, scale_1
        self.norm_2, self.scale_2 = norm_2, scale_2
        self.mix_tokens, self.mix_channels = mix_tokens, mix_channels
        self.drop = drop

    def forward(self, x: Tensor, *context: Tensor) -> Tensor:
        """Mix tokens, then channels; the shape stays.

        Args:
            x: Features. (B, L, C) or (B, C, rows, columns), as the parts are made for.
            *context: The mixer's arguments besides x: for text the padding mask, (B, L), True where
                padded; for images nothing.
        """
        x = x + self.drop(self.scale_1(self.mix_tokens(self.norm_1(x), *context)))
        return x + self.drop(self.scale_2(self.mix_channels(self.norm_2(x))))


class ResMLPDecoderBlock(nn.Module):
    """Mix tokens, attend to the memory, mix channels. Works on (R, T, C).

        x = x + drop(scale_1(mix_tokens(norm_1(x))))
        x = x + drop(scale_c(attend(norm_c(x), memory)))
        x = x + drop(scale_2(mix_channels(norm_2(x))))

    Args:
        norm_1, mix_tokens, scale_1: The first line. The mixer must be causal.
        norm_c, attend, scale_c: The second line, with a `SourceAttention`.
        norm_2, mix_channels, scale_2: The third line.
        drop: The dropout of all three. It has no weights.
    """

    def __init__(
        self,
        *,
        norm_1: nn.Module,
        mix_tokens: nn.Module,
        scale_1: nn.Module,
        norm_c: nn.Module,
        attend: nn.Module,
        scale_c: nn.Module,
        norm_2: nn.Module,
        mix_channels: nn.Module,
        scale_2: nn.Module,
        drop: nn.Module,
    ):
        super().__init__()
        # Checkpoints keep the optimizer's state in the order of the parameters. Keep this order.
        self.norm_1, self.scale_1 = norm_1, scale_1
        self.norm_2, self.scale_2 = norm_2, scale_2
        self.mix_tokens, self.mix_channels = mix_tokens, mix_channels
        self.drop = drop
        self.norm_c, self.scale_c = norm_c, scale_c
        self.attend = attend

    @staticmethod
    def start() -> BlockState:
        """The state before the first step."""
        return {"mix": {}, "attend": {}}

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        state: BlockState | None = None,
    ) -> Tensor:
        """Mix tokens, attend to the memory, mix channels.

        Args:
            x: Features of the new positions. (R, T, C).
            memory: Encoder output. (B, S, memory_dim).
            memory_mask: True where the memory is padded. (B, S).
            state: The state after earlier steps, see `start`; None for a full pass.

        Returns:
            Features. (R, T, C).
        """
        mix, attend = (None, None) if state is None else (state["mix"], state["attend"])
        # Pads follow the words, so a causal mixer needs no mask.
        x = x + self.drop(self.scale_1(self.mix_tokens(self.norm_1(x), None, mix)))
        x = x + self.drop(self.scale_c(self.attend(self.norm_c(x), memory, memory_mask, attend)))
        return x + self.drop(self.scale_2(self.mix_channels(self.norm_2(x))))

    def source_weights(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        state: BlockState | None = None,
    ) -> Tensor:
        """The attention weights that `forward` uses for the same arguments, to show. (R, T, S).

        Call it before `forward`, which changes the state. This leaves the state as it is.
        """
        mix = None if state is None else dict(state["mix"])
        x = x + self.scale_1(self.mix_tokens(self.norm_1(x), None, mix))
        return self.attend.weights(self.norm_c(x), memory, memory_mask)
