"""Attention from the decoder to the encoder output, the one attention that the model keeps."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.nn.dropout import KeepsDropout


def expect_new_shapes() -> None:
    """Let all attention on a GPU begin at once with batches of a new size or length, as of text.

    On GPUs since Hopper torch takes cuDNN's attention first, which makes a plan for each new shape.
    That takes longer than the rest of an update of a small model.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


class SourceAttention(KeepsDropout):
    """Multi-head dot-product attention over a memory (arXiv 1706.03762, section 3.2.2).

    Args:
        dim: Number of channels C of the queries and the output.
        memory_dim: Number of channels of the memory.
        heads: Number of attention heads.
        dropout: Probability to drop an attention weight in training.

    Raises:
        UserError: If the heads do not divide the channels.
    """

    def __init__(self, dim: int, memory_dim: int, heads: int, dropout: float):
        super().__init__()
        if dim % heads:
            raise UserError(f"{heads} attention heads do not divide {dim} channels")
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(memory_dim, dim)
        self.value = nn.Linear(memory_dim, dim)
        self.out = nn.Linear(dim, dim)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        state: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """Attend to the memory.

        Args:
            x: Features that ask. The beams of a sentence share its keys and values, so that R is
                a multiple of B. (R, T, C).
            memory: Encoder output. (B, S, memory_dim).
            memory_mask: True where the memory is padded. (B, S).
            state: Keeps the keys and values of the first step for the later ones.

        Returns:
            Features gathered from the memory. (R, T, C).
        """
        key, value = self._keys_and_values(memory, state)
        query = self._ask(x, len(key))
        if state is None or x.is_cuda or self.training:
            y = F.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=None if memory_mask is None else ~memory_mask[:, None, None, :],
                dropout_p=self.dropout if self.training else 0.0,
            )
        else:  # torch's kernel takes twice as long for the few queries of a step on CPUs
            y = _score(query, key, memory_mask).softmax(-1) @ value
        return self.out(y.transpose(1, 2).reshape(x.shape))

    def weights(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """The attention weights of `forward`, averaged over heads, to show. (R, T, S)."""
        query, key = self._ask(x, len(memory)), self._split(self.key(memory))
        scores = _score(query, key, memory_mask)
        return scores.float().softmax(-1).mean(1).reshape(*x.shape[:2], -1)

    def _ask(self, x: Tensor, memories: int) -> Tensor:
        # (R, T, C) -> (B, heads, R / B * T, C / heads)
        return self._split(self.query(x).reshape(memories, -1, x.size(-1)))

    def _keys_and_values(self, memory: Tensor, state: dict[str, Tensor] | None):
        if state is not None and "keys" in state:
            return state["keys"], state["values"]
        key, value = self._split(self.key(memory)), self._split(self.value(memory))
        if state is not None:
            key, value = key.contiguous(), value.contiguous()
            state["keys"], state["values"] = key, value
        return key, value

    def _split(self, x: Tensor) -> Tensor:
        # (B, L, C) -> (B, heads, L, C / heads)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def _score(query: Tensor, key: Tensor, memory_mask: Tensor | None) -> Tensor:
    # (B, heads, T, C / heads) and (B, heads, S, C / heads) -> (B, heads, T, S)
    scores = (query * query.size(-1) ** -0.5) @ key.transpose(-1, -2)
    if memory_mask is None:
        return scores
    return scores.masked_fill(memory_mask[:, None, None, :], float("-inf"))
