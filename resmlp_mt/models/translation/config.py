"""The flags of the translator."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from resmlp_mt.errors import UserError, name_flag
from resmlp_mt.models.parts import SEQUENCE_MIXERS, SEQUENCE_NORMS

# Sizes that are 1 or more. An encoder may have no blocks, and read words without their neighbours.
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
        default=1, metadata={"help": "matrices A in a layer; each mixes its share of the channels"}
    )
    mixing_init_std: float = field(
        default=0.02, metadata={"help": "standard deviation of A at the start"}
    )
    norm: ChoiceEnum(list(SEQUENCE_NORMS)) = field(
        default="affine", metadata={"help": "norm before every sublayer and the output"}
    )
    layer_scale_init: float = field(
        default=0.2, metadata={"help": "LayerScale of every sublayer's output at the start"}
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
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "compute the blocks once more in the backward pass: slower, with less memory"
        },
    )
    torch_compile: bool = field(
        default=False, metadata={"help": "compile the blocks with torch.compile for training"}
    )
    round_bits: int = field(
        default=0,
        metadata={
            "help": "round weights to so many bits, 4 to 8, and activations to 8, as 'resmlp-mt "
            "export --int8' does (0: compute in full)"
        },
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def check_flags(cfg: ResMLPConfig) -> None:
    """Refuse flags that are impossible, or that contradict each other.

    Raises:
        UserError: Naming the flag.
    """
    for name in COUNTS:
        if getattr(cfg, name) < 1:
            raise UserError(f"{name_flag(name)} must be at least 1, not {getattr(cfg, name)}")
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        if not 0 <= getattr(cfg, name) <= 1:
            raise UserError(f"{name_flag(name)} is a probability, not {getattr(cfg, name)}")
    if cfg.round_bits and cfg.round_bits not in range(4, 9):
        raise UserError(f"--round-bits must be 4 to 8, or 0, not {cfg.round_bits}")
    if not cfg.mixing_init_std >= 0:  # nor NaN
        raise UserError(f"--mixing-init-std must be at least 0, not {cfg.mixing_init_std}")
    if cfg.share_all_embeddings and cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise UserError(
            "--share-all-embeddings needs equal --encoder-embed-dim and --decoder-embed-dim, "
            f"not {cfg.encoder_embed_dim} and {cfg.decoder_embed_dim}"
        )
