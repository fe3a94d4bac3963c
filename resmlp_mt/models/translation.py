"""The sequence-to-sequence ResMLP (arXiv 2105.03404, section 3.6) as a fairseq model."""

from dataclasses import dataclass, field
from pathlib import Path

import torch
from fairseq import hub_utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from fairseq.modules import PositionalEmbedding
from omegaconf import II, open_dict
from torch import Tensor, nn

from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.models.parts import SEQUENCE_MIXERS, SEQUENCE_NORMS, build_mixer, build_norm
from resmlp_mt.models.presets import PRESETS, register_presets
from resmlp_mt.nn.attention import SourceAttention
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock, ResMLPDecoderBlock
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.old_names import rename

# What a model has at least one of. An encoder without blocks reads words without their neighbours.
COUNTS = """encoder_embed_dim encoder_ffn_embed_dim max_source_positions decoder_embed_dim
    decoder_ffn_embed_dim decoder_layers max_target_positions decoder_attention_heads
    mixing_heads""".split()


@dataclass
class ResMLPConfig(FairseqDataclass):
    """The flags of the translator; fairseq's names where fairseq has one."""

    encoder_embed_dim: int = field(default=512, metadata={"help": "encoder channels C"})
    encoder_ffn_embed_dim: int = field(
        default=2048, metadata={"help": "hidden channels of the encoder's channel MLP"}
    )
    encoder_layers: int = field(default=6, metadata={"help": "encoder blocks"})
    decoder_embed_dim: int = field(default=512, metadata={"help": "decoder channels C"})
    decoder_ffn_embed_dim: int = field(
        default=2048, metadata={"help": "hidden channels of the decoder's channel MLP"}
    )
    decoder_layers: int = field(default=6, metadata={"help": "decoder blocks"})
    decoder_attention_heads: int = field(
        default=8, metadata={"help": "heads of the attention to the encoder output"}
    )
    token_mixer: ChoiceEnum(list(SEQUENCE_MIXERS)) = field(
        default="linear",
        metadata={"help": "what mixes positions: the paper's matrix is 'linear'"},
    )
    mixing_heads: int = field(
        default=1, metadata={"help": "matrices A a layer, each for its share of the channels"}
    )
    mixing_init_std: float = field(
        default=0.02, metadata={"help": "standard deviation that A starts with"}
    )
    norm: ChoiceEnum(list(SEQUENCE_NORMS)) = field(
        default="affine", metadata={"help": "norm before every sublayer and the output"}
    )
    layer_scale_init: float = field(
        default=0.2, metadata={"help": "LayerScale that every sublayer's output starts with"}
    )
    dropout: float = field(default=0.1, metadata={"help": "dropout on embeddings and sublayers"})
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout on the weights of the attention to the source"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout inside the channel MLP"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "share decoder input and output embeddings"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "share encoder, decoder input and output embeddings (joined dictionary)"},
    )
    no_scale_embedding: bool = field(
        default=False, metadata={"help": "do not multiply embeddings by sqrt(C)"}
    )
    no_token_positional_embeddings: bool = field(
        default=False, metadata={"help": "add no positions to the embeddings"}
    )
    encoder_learned_pos: bool = field(
        default=False, metadata={"help": "learn the encoder's positions instead of sinusoids"}
    )
    decoder_learned_pos: bool = field(
        default=False, metadata={"help": "learn the decoder's positions instead of sinusoids"}
    )
    torch_compile: bool = field(
        default=False, metadata={"help": "compile the blocks with torch.compile for training"}
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


class _Embedding(nn.Module):
    """Token embeddings, scaled, with positions added. (B, L) -> (B, L, C)."""

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
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        if self.longest is not None and tokens.size(1) > self.longest:
            raise ValueError(
                f"{tokens.size(1)} tokens do not fit {self.longest} learned positions; shorten the "
                "text, or train with larger --max-source-positions and --max-target-positions"
            )
        x = self.scale * self.tokens(tokens[:, start:])
        if self.positions is not None:
            x = x + self.positions(tokens)[:, start:].to(x)
        return self.drop(x)


class ResMLPEncoder(FairseqEncoder):
    """Source tokens -> memory."""

    def __init__(self, cfg: ResMLPConfig, dictionary, tokens: nn.Embedding):
        super().__init__(dictionary)
        self.padding_idx = tokens.padding_idx
        self.longest = cfg.max_source_positions
        dim = cfg.encoder_embed_dim
        self.embed = _Embedding(cfg, tokens, self.longest, cfg.encoder_learned_pos)
        self.blocks = nn.ModuleList(
            ResMLPBlock(
                norm_1=build_norm(str(cfg.norm), dim),
                mix_tokens=_build_mixer(cfg, dim, self.longest, causal=False),
                scale_1=LayerScale(dim, cfg.layer_scale_init),
                norm_2=build_norm(str(cfg.norm), dim),
                mix_channels=ChannelMLP(dim, cfg.encoder_ffn_embed_dim, cfg.activation_dropout),
                scale_2=LayerScale(dim, cfg.layer_scale_init),
                drop=nn.Dropout(cfg.dropout),
            )
            for _ in range(cfg.encoder_layers)
        )
        self.norm = build_norm(str(cfg.norm), dim)
        self.apply(_init_linear)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> dict:
        """Encode the source.

        Args:
            src_tokens: Token indices, padded on either side. (B, S).
            src_lengths: Not needed; fairseq passes it.

        Returns:
            encoder_out: [memory], padding on the right whatever the input had. (B, S, C).
            encoder_padding_mask: [True where the memory is padded]. (B, S).
            encoder_order: [column of src_tokens that each column of the memory stands for]. (B, S).
            encoder_rows: [row of the memory that each row of the decoder attends to]. (B,).
        """
        # A indexes absolute positions: the first word must sit at position 0.
        order = src_tokens.eq(self.padding_idx).byte().argsort(dim=1, stable=True)
        src_tokens = src_tokens.gather(1, order)
        padding_mask = src_tokens.eq(self.padding_idx)
        x = self.embed(src_tokens)
        for block in self.blocks:
            x = block(x, padding_mask)
        return {
            "encoder_out": [self.norm(x)],
            "encoder_padding_mask": [padding_mask],
            "encoder_order": [order],
            "encoder_rows": [torch.arange(len(x), device=x.device)],
        }

    def reorder_encoder_out(self, encoder_out: dict, new_order: Tensor) -> dict:
        """Select rows for the decoder. new_order: (R,) indices into those of before.

        The beams of a sentence share its memory, which has B rows for R = B K of the decoder.
        """
        rows = encoder_out["encoder_rows"][0][new_order]
        kept = _share(rows)
        parts = {name: tensors for name, tensors in encoder_out.items() if name != "encoder_rows"}
        if not _is_all(kept, encoder_out["encoder_out"][0]):
            parts = {name: [t.index_select(0, kept) for t in part] for name, part in parts.items()}
        beams = len(rows) // len(kept)
        own = torch.arange(len(kept), device=rows.device).repeat_interleave(beams)
        return {**parts, "encoder_rows": [own]}

    def max_positions(self) -> int:
        """N of the encoder's A."""
        return self.longest


class ResMLPDecoder(FairseqIncrementalDecoder):
    """Target tokens so far and memory -> scores of the next tokens."""

    def __init__(self, cfg: ResMLPConfig, dictionary, tokens: nn.Embedding):
        super().__init__(dictionary)
        self.longest = cfg.max_target_positions
        self.need_attn = False
        dim = cfg.decoder_embed_dim
        self.embed = _Embedding(cfg, tokens, self.longest, cfg.decoder_learned_pos)
        self.blocks = nn.ModuleList(
            ResMLPDecoderBlock(
                norm_1=build_norm(str(cfg.norm), dim),
                mix_tokens=_build_mixer(cfg, dim, self.longest, causal=True),
                scale_1=LayerScale(dim, cfg.layer_scale_init),
                norm_c=build_norm(str(cfg.norm), dim),
                attend=SourceAttention(
                    dim,
                    cfg.encoder_embed_dim,
                    cfg.decoder_attention_heads,
                    cfg.attention_dropout,
                ),
                scale_c=LayerScale(dim, cfg.layer_scale_init),
                norm_2=build_norm(str(cfg.norm), dim),
                mix_channels=ChannelMLP(dim, cfg.decoder_ffn_embed_dim, cfg.activation_dropout),
                scale_2=LayerScale(dim, cfg.layer_scale_init),
                drop=nn.Dropout(cfg.dropout),
            )
            for _ in range(cfg.decoder_layers)
        )
        self.norm = build_norm(str(cfg.norm), dim)
        self.apply(_init_linear)
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
            prev_output_tokens: The target, shifted by one; padding on the right. (B, T).
            encoder_out: What the encoder returned.
            incremental_state: For step-by-step decoding; only the positions that it has not seen
                are computed and returned.
            features_only: Leave the output layer out.

        Returns:
            Logits (B, T, V), or features (B, T, C); and {"attn": [weights of the last layer's
            attention to the source, in the order of src_tokens (B, T, S), or None]}.
        """
        memory, memory_mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        start, states = 0, [None] * len(self.blocks)
        if incremental_state is not None:
            if not incremental_state:
                blocks = [block.start() for block in self.blocks]
                incremental_state.update(seen=0, blocks=blocks)
            start, states = incremental_state["seen"], incremental_state["blocks"]
            incremental_state["rows"], incremental_state["seen"] = prev_output_tokens.shape
        x = self.embed(prev_output_tokens, start)
        for block, state in zip(self.blocks[:-1], states[:-1], strict=True):
            x = block(x, memory, memory_mask, state)
        attn = None
        if self.need_attn:
            attn = self.blocks[-1].source_weights(x, memory, memory_mask, states[-1])
            order = encoder_out["encoder_order"][0].argsort(dim=1)
            order = order.repeat_interleave(len(attn) // len(order), dim=0)
            attn = attn.gather(2, order.unsqueeze(1).expand_as(attn))
        x = self.norm(self.blocks[-1](x, memory, memory_mask, states[-1]))
        return (x if features_only else self.output(x)), {"attn": [attn]}

    def make_generation_fast_(self, need_attn: bool = False, **kwargs) -> None:
        """fairseq calls this before it generates; `need_attn` stands for --print-alignment."""
        self.need_attn = need_attn

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Select hypotheses, in place. new_order: (R,) indices into the batch."""
        rows = incremental_state.get("rows")
        for state in incremental_state.get("blocks", []):
            mix, attend = state["mix"], state["attend"]
            beams = rows // len(attend["keys"])
            kept = _share(new_order // beams)
            if not _is_all(kept, attend["keys"]):
                state["attend"] = {name: t.index_select(0, kept) for name, t in attend.items()}
            state["mix"] = {name: t.index_select(0, new_order) for name, t in mix.items()}
        incremental_state["rows"] = len(new_order)

    def reorder_incremental_state_scripting(
        self, incremental_state: dict, new_order: Tensor
    ) -> None:
        """The same; fairseq's would look for more of it in every module, at every step."""
        self.reorder_incremental_state(incremental_state, new_order)

    def max_positions(self) -> int:
        """N of the decoder's A."""
        return self.longest


@register_model("resmlp", dataclass=ResMLPConfig)
class ResMLPModel(FairseqEncoderDecoderModel):
    """The translator. Its defaults are the paper's ResMLP-6; PRESETS has the named sizes."""

    waits_for_compilation = False

    @classmethod
    def build_model(cls, cfg: ResMLPConfig, task) -> "ResMLPModel":
        """Build the model for the task's dictionaries and lengths.

        Raises:
            ValueError: If the flags contradict each other or the dictionaries.
        """
        _check_sizes(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if cfg.share_all_embeddings and source != target:
            raise ValueError("--share-all-embeddings needs a joined dictionary")
        if cfg.share_all_embeddings and cfg.encoder_embed_dim != cfg.decoder_embed_dim:
            raise ValueError(
                "--share-all-embeddings needs equal --encoder-embed-dim and --decoder-embed-dim, "
                f"not {cfg.encoder_embed_dim} and {cfg.decoder_embed_dim}"
            )
        if getattr(task.cfg, "left_pad_target", False):
            raise ValueError("--left-pad-target would move the first word from position 0 of A")
        target_tokens = _build_tokens(target, cfg.decoder_embed_dim)
        source_tokens = target_tokens
        if not cfg.share_all_embeddings:
            source_tokens = _build_tokens(source, cfg.encoder_embed_dim)
        model = cls(
            ResMLPEncoder(cfg, source, source_tokens), ResMLPDecoder(cfg, target, target_tokens)
        )
        model.waits_for_compilation = cfg.torch_compile
        return model

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str,
        checkpoint_file: str | None = None,
        data_name_or_path: str = ".",
        **kwargs,
    ) -> hub_utils.GeneratorHubInterface:
        """Load a model with fairseq's interface for translating: `translate`, `sample`, `generate`.

        Checkpoints are read without running code from them. `Translator` is our own interface.

        Args:
            model_name_or_path: A model that comes with the package, a folder, or a checkpoint.
            checkpoint_file: Of the folder; several with colons between them are an ensemble.
                Default: the checkpoint in it, as `resmlp-mt translate` finds it.
            data_name_or_path: Where dictionaries and SentencePiece models are; what begins with a
                dot lies in the folder of the model.
            **kwargs: Flags to override; `bpe` in the place of the model's own SentencePiece.

        Raises:
            UserError: If there is no such model, or it is broken.
        """
        folder = model_name_or_path
        if checkpoint_file is None:
            path = find_checkpoint(model_name_or_path).absolute()
            folder, checkpoint_file = str(path.parent), path.name
        loaded = hub_utils.from_pretrained(folder, checkpoint_file, data_name_or_path, **kwargs)
        cfg, task, models = (loaded[name] for name in ("args", "task", "models"))
        subwords = find_subwords(Path(cfg.task.data), task.cfg.source_lang)
        if subwords and "bpe" not in kwargs:
            with open_dict(cfg):
                cfg.bpe = dict(_name="sentencepiece", sentencepiece_model=str(subwords))
        return hub_utils.GeneratorHubInterface(cfg, task, models)

    def set_num_updates(self, num_updates: int) -> None:
        """fairseq calls this before every update, and outside of training never.

        So only trainings compile: the steps of a search would each be another shape.
        """
        super().set_num_updates(num_updates)
        if self.waits_for_compilation:
            self.waits_for_compilation = False
            for block in [*self.encoder.blocks, *self.decoder.blocks]:
                block.compile(dynamic=True)

    def load_state_dict(self, state_dict: dict, strict: bool = True, model_cfg=None, args=None):
        """Load weights; arguments as fairseq's.

        Raises:
            ValueError: If the weights are of other dictionaries than the task's, or not shared
                where the model shares them.
        """
        state_dict = rename(state_dict)
        for side, module in (("encoder", self.encoder), ("decoder", self.decoder)):
            tokens = state_dict.get(f"{side}.embed.tokens.weight")
            if tokens is not None and len(tokens) != len(module.dictionary):
                raise ValueError(
                    f"the checkpoint was trained with a dictionary of {len(tokens)} entries, the "
                    f"{side}'s has {len(module.dictionary)}: use the data folder of its training"
                )
        embeddings = {}
        for name, tensor in self.named_parameters(remove_duplicate=False):
            if name in state_dict:
                embeddings.setdefault(tensor, []).append(name)
        for first, *others in embeddings.values():
            if any(not torch.equal(state_dict[first], state_dict[name]) for name in others):
                raise ValueError(
                    f"the checkpoint was trained with {first} and {' and '.join(others)} apart, "
                    "which are one here: leave out --share-all-embeddings and "
                    "--share-decoder-input-output-embed as in its training"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)


def _check_sizes(cfg: ResMLPConfig) -> None:
    for name in COUNTS:
        if getattr(cfg, name) < 1:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} must be at least 1, not {getattr(cfg, name)}")
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        if not 0 <= getattr(cfg, name) <= 1:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} is a probability, not {getattr(cfg, name)}")


def _share(rows: Tensor) -> Tensor:
    """The rows of the memory to keep for these, in turn: one for K equal ones, if all have K."""
    kept, counts = rows.unique_consecutive(return_counts=True)
    return kept if counts.min() == counts.max() else rows


def _is_all(kept: Tensor, memory: Tensor) -> bool:
    return torch.equal(kept, torch.arange(len(memory), device=kept.device))


def _build_mixer(cfg: ResMLPConfig, dim: int, positions: int, causal: bool) -> nn.Module:
    return build_mixer(
        str(cfg.token_mixer),
        dim,
        positions,
        heads=cfg.mixing_heads,
        causal=causal,
        init_std=cfg.mixing_init_std,
    )


def _build_tokens(dictionary, dim: int) -> nn.Embedding:
    tokens = nn.Embedding(len(dictionary), dim, dictionary.pad())
    nn.init.normal_(tokens.weight, std=dim**-0.5)
    with torch.no_grad():
        tokens.weight[dictionary.pad()].zero_()
    return tokens


def _init_linear(module: nn.Module) -> None:
    # As fairseq's Transformer, so that the two differ in the mixing alone.
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


register_presets("resmlp", ResMLPConfig, PRESETS)
