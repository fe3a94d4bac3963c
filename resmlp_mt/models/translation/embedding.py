"""Tokens to features."""

from fairseq.modules import PositionalEmbedding
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.translation.config import ResMLPConfig
from resmlp_mt.nn.dropout import Dropout


class TokenEmbedding(nn.Module):
    """Token embeddings, scaled, with positions added.

    Args:
        cfg: The flags.
        tokens: The table of embeddings.
        positions: N, the longest text of a model that learns its positions.
        learned: Whether positions are learned instead of sinusoids.
    """

    def __init__(self, cfg: ResMLPConfig, tokens: nn.Embedding, positions: int, learned: bool):
        super().__init__()
        self.tokens = tokens
        self.scale = 1.0 if cfg.no_scale_embedding else tokens.embedding_dim**0.5
        self.positions = None
        if not cfg.no_token_positional_embeddings:
            self.positions = PositionalEmbedding(
                positions, tokens.embedding_dim, tokens.padding_idx, learned=learned
            )
        self.longest = positions if learned and self.positions is not None else None
        self.drop = Dropout(cfg.dropout)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Embed the tokens from position `start` on. (B, L) -> (B, L - start, C).

        Raises:
            UserError: If there are more tokens than learned positions.
        """
        if self.longest is not None and tokens.size(1) > self.longest:
            raise UserError(
                f"{tokens.size(1)} tokens do not fit {self.longest} learned positions; shorten the "
                "text, or train with larger --max-source-positions and --max-target-positions"
            )
        x = self.scale * self.tokens(tokens[:, start:])
        if self.positions is not None:
            x = x + self.positions(tokens)[:, start:].to(x)
        return self.drop(x)
