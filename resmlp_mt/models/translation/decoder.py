"""Target tokens so far and memory to the next tokens, all at once or step by step."""

from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.parts import build_mixer, build_norm
from resmlp_mt.models.translation.beams import choose_memory, is_all
from resmlp_mt.models.translation.config import ResMLPConfig
from resmlp_mt.models.translation.embedding import TokenEmbedding
from resmlp_mt.models.translation.init import init_linear
from resmlp_mt.nn.attention import SourceAttention
from resmlp_mt.nn.blocks import BlockState, ChannelMLP, ResMLPDecoderBlock
from resmlp_mt.nn.dropout import Dropout, split_names
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.recompute import recompute_block, run_block


class ResMLPDecoder(FairseqIncrementalDecoder):
    """Target tokens so far and memory -> scores of the next tokens.

    fairseq's `incremental_state` is a dict, empty before the first step. The decoder keeps there:
        blocks: The state of each block.
        seen: The number of positions so far.
        rows: R, how many rows it has worked on: the beams of B sentences.

    Args:
        cfg: The flags.
        dictionary: fairseq's, of the target.
        tokens: The table of embeddings.
    """

    def __init__(self, cfg: ResMLPConfig, dictionary, tokens: nn.Embedding):
        super().__init__(dictionary)
        self.longest = cfg.max_target_positions
        self.need_attn = False
        dim = cfg.decoder_embed_dim
        self.embed = TokenEmbedding(cfg, tokens, self.longest, cfg.decoder_learned_pos)
        self.blocks = nn.ModuleList(_build_block(cfg) for _ in range(cfg.decoder_layers))
        self.run_block = recompute_block if cfg.checkpoint_activations else run_block
        self.norm = build_norm(str(cfg.norm), dim)
        self.apply(init_linear)
        self.output = nn.Linear(dim, len(dictionary), bias=False)
        if cfg.share_decoder_input_output_embed or cfg.share_all_embeddings:
            self.output.weight = tokens.weight
        else:
            nn.init.normal_(self.output.weight, std=dim**-0.5)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict,
        incremental_state: dict | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict]:
        """Score the next tokens.

        Args:
            prev_output_tokens: The target, shifted by one; padding on the right. (R, T).
            encoder_out: The output of the encoder.
            incremental_state: For step-by-step decoding; only the positions that it has not seen
                are computed and returned.
            features_only: Leave the output layer out.

        Returns:
            Logits (R, T, V), or features (R, T, C); and {"attn": [weights of the last layer's
            attention to the source, in the order of src_tokens (R, T, S), or None]}.
        """
        memory, memory_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        start, states = 0, [None] * len(self.blocks)
        if incremental_state is not None:
            start, states = self._go_on(incremental_state, prev_output_tokens)
        x = self.embed(prev_output_tokens, start)
        for block, state in zip(self.blocks[:-1], states[:-1], strict=True):
            x = self.run_block(block, x, memory, memory_mask, state)
        attn = None
        if self.need_attn:
            attn = self.blocks[-1].source_weights(x, memory, memory_mask, states[-1])
            order = encoder_out["encoder_order"][0].argsort(dim=1)
            order = order.repeat_interleave(len(attn) // len(order), dim=0)
            attn = attn.gather(2, order.unsqueeze(1).expand_as(attn))
        x = self.norm(self.run_block(self.blocks[-1], x, memory, memory_mask, states[-1]))
        return (x if features_only else self.output(x)), {"attn": [attn]}

    def extract_features(self, *args, **kwargs) -> tuple[Tensor, dict]:
        """`forward` without the output layer, under the name that it has in fairseq's decoders."""
        return self(*args, features_only=True, **kwargs)

    def _go_on(self, incremental_state: dict, tokens: Tensor) -> tuple[int, list[BlockState]]:
        """The first new position and the blocks' states; notes that all these are seen."""
        if not incremental_state:
            incremental_state.update(seen=0, blocks=[block.start() for block in self.blocks])
        start = incremental_state["seen"]
        incremental_state["rows"], incremental_state["seen"] = tokens.shape
        return start, incremental_state["blocks"]

    def make_generation_fast_(
        self, need_attn: bool = False, retain_dropout_modules=None, **kwargs
    ) -> None:
        """fairseq calls this before it generates.

        Args:
            need_attn: Comes from --print-alignment.
            retain_dropout_modules: Names of parts of the whole model, see `KeepsDropout`.

        Raises:
            UserError: If there is no part of such a name.
        """
        self.need_attn = need_attn
        for name in split_names(retain_dropout_modules or []):
            if name.split(".")[0] not in ("encoder", "decoder"):
                raise UserError(
                    f"--retain-dropout-modules {name}: name encoder, decoder or parts of them, as "
                    "decoder.embed, with commas between them"
                )

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Select hypotheses, in place.

        Args:
            incremental_state: The state after the steps so far.
            new_order: Indices into the rows of before. (R,).
        """
        if not incremental_state:
            return
        for state in incremental_state["blocks"]:
            mix, attend = state["mix"], state["attend"]
            beams = incremental_state["rows"] // len(attend["keys"])
            kept = choose_memory(new_order // beams)
            if not is_all(kept, attend["keys"]):
                state["attend"] = {name: t.index_select(0, kept) for name, t in attend.items()}
            state["mix"] = {name: t.index_select(0, new_order) for name, t in mix.items()}
        incremental_state["rows"] = len(new_order)

    def reorder_incremental_state_scripting(
        self, incremental_state: dict, new_order: Tensor
    ) -> None:
        """The same. fairseq's own would search every module for it, at every step."""
        self.reorder_incremental_state(incremental_state, new_order)

    @property
    def output_projection(self) -> nn.Linear:
        """The output layer, under the name that it has in fairseq's decoders."""
        return self.output

    def max_positions(self) -> int:
        """N of the decoder's A."""
        return self.longest


def _build_block(cfg: ResMLPConfig) -> ResMLPDecoderBlock:
    dim, norm, scale_init = cfg.decoder_embed_dim, str(cfg.norm), cfg.layer_scale_init
    return ResMLPDecoderBlock(
        norm_1=build_norm(norm, dim),
        mix_tokens=build_mixer(
            str(cfg.token_mixer),
            dim,
            cfg.max_target_positions,
            heads=cfg.mixing_heads,
            init_std=cfg.mixing_init_std,
            causal=True,
        ),
        scale_1=LayerScale(dim, scale_init),
        norm_c=build_norm(norm, dim),
        attend=SourceAttention(
            dim, cfg.encoder_embed_dim, cfg.decoder_attention_heads, cfg.attention_dropout
        ),
        scale_c=LayerScale(dim, scale_init),
        norm_2=build_norm(norm, dim),
        mix_channels=ChannelMLP(dim, cfg.decoder_ffn_embed_dim, cfg.activation_dropout),
        scale_2=LayerScale(dim, scale_init),
        drop=Dropout(cfg.dropout),
    )
