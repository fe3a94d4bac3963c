"""Source tokens to memory."""

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from resmlp_mt.models.parts import build_mixer, build_norm
from resmlp_mt.models.translation.beams import choose_memory, is_all
from resmlp_mt.models.translation.config import ResMLPConfig
from resmlp_mt.models.translation.embedding import TokenEmbedding
from resmlp_mt.models.translation.init import init_linear
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.recompute import recompute_block, run_block


class ResMLPEncoder(FairseqEncoder):
    """Source tokens -> memory.

    Args:
        cfg: The flags.
        dictionary: fairseq's, of the source.
        tokens: The table of embeddings.
    """

    def __init__(self, cfg: ResMLPConfig, dictionary, tokens: nn.Embedding):
        super().__init__(dictionary)
        self.padding_idx = tokens.padding_idx
        self.longest = cfg.max_source_positions
        self.embed = TokenEmbedding(cfg, tokens, self.longest, cfg.encoder_learned_pos)
        self.blocks = nn.ModuleList(_build_block(cfg) for _ in range(cfg.encoder_layers))
        self.run_block = recompute_block if cfg.checkpoint_activations else run_block
        self.norm = build_norm(str(cfg.norm), cfg.encoder_embed_dim)
        self.apply(init_linear)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> dict:
        """Encode the source.

        Args:
            src_tokens: Token indices, padded on either side. (B, S).
            src_lengths: Not needed; fairseq passes it.

        Returns:
            encoder_out: [memory], padding on the right whatever the input had. (B, S, C).
            encoder_padding_mask: [True where the memory is padded]. (B, S).
            encoder_order: [column of src_tokens that each column of the memory stands for]. (B, S).
            encoder_rows: [row of the memory that each row of the decoder attends to]. (R,), at
                first (B,).
        """
        # A indexes absolute positions: the first word must sit at position 0.
        order = src_tokens.eq(self.padding_idx).byte().argsort(dim=1, stable=True)
        src_tokens = src_tokens.gather(1, order)
        padding_mask = src_tokens.eq(self.padding_idx)
        x = self.embed(src_tokens)
        for block in self.blocks:
            x = self.run_block(block, x, padding_mask)
        return {
            "encoder_out": [self.norm(x)],
            "encoder_padding_mask": [padding_mask],
            "encoder_order": [order],
            "encoder_rows": [torch.arange(len(x), device=x.device)],
        }

    def reorder_encoder_out(self, encoder_out: dict, new_order: Tensor) -> dict:
        """Select rows for the decoder.

        Args:
            encoder_out: The output of `forward` or of this method.
            new_order: Indices into the decoder's rows of before. (R,).
        """
        rows = encoder_out["encoder_rows"][0][new_order]
        kept = choose_memory(rows)
        parts = {name: tensors for name, tensors in encoder_out.items() if name != "encoder_rows"}
        if not is_all(kept, encoder_out["encoder_out"][0]):
            parts = {name: [t.index_select(0, kept) for t in part] for name, part in parts.items()}
        beams = len(rows) // len(kept)
        own = torch.arange(len(kept), device=rows.device).repeat_interleave(beams)
        return {**parts, "encoder_rows": [own]}

    def max_positions(self) -> int:
        """N of the encoder's A."""
        return self.longest


def _build_block(cfg: ResMLPConfig) -> ResMLPBlock:
    dim, norm, scale_init = cfg.encoder_embed_dim, str(cfg.norm), cfg.layer_scale_init
    return ResMLPBlock(
        norm_1=build_norm(norm, dim),
        mix_tokens=build_mixer(
            str(cfg.token_mixer),
            dim,
            cfg.max_source_positions,
            heads=cfg.mixing_heads,
            init_std=cfg.mixing_init_std,
        ),
        scale_1=LayerScale(dim, scale_init),
        norm_2=build_norm(norm, dim),
        mix_channels=ChannelMLP(dim, cfg.encoder_ffn_embed_dim, cfg.activation_dropout),
        scale_2=LayerScale(dim, scale_init),
        drop=Dropout(cfg.dropout),
    )
