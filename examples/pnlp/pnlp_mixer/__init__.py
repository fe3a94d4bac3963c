"""A fairseq plugin, `--user-dir examples/pnlp/pnlp_mixer`: pNLP-Mixer on the shared blocks.

It is trained by fairseq's own task and loss for texts with labels, `sentence_prediction`.
"""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.parts import build_mixer, build_norm
from resmlp_mt.models.presets import register_presets
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.patches import init_lecun

from .projection import Projection


@dataclass
class PNLPMixerConfig(FairseqDataclass):
    """The sizes. The defaults are those of the paper's base model."""

    max_words: int = field(default=64, metadata={"help": "words of a text, N"})
    hashes: int = field(default=64, metadata={"help": "hash functions of a fingerprint"})
    filter_size: int = field(default=1024, metadata={"help": "counters of the Bloom filter"})
    window: int = field(default=1, metadata={"help": "neighbours on each side of a word"})
    embed_dim: int = field(default=256, metadata={"help": "channels C, the bottleneck"})
    layers: int = field(default=2, metadata={"help": "blocks"})
    ffn_embed_dim: int = field(default=256, metadata={"help": "hidden width of the channel MLP"})
    token_ffn_embed_dim: int = field(
        default=256, metadata={"help": "hidden width of the MLP over words"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout on sublayers"})


PRESETS = {
    "pnlp_mixer_base": {},
    "pnlp_mixer_xs": dict(embed_dim=64, window=0),
    # Not the paper's: fewer words, and more counters to tell them apart.
    "pnlp_mixer_short": dict(max_words=32, embed_dim=64, window=0, filter_size=2048),
}
# Sizes that are 1 or more.
COUNTS = "max_words hashes filter_size embed_dim layers ffn_embed_dim token_ffn_embed_dim".split()


@register_model("pnlp_mixer", dataclass=PNLPMixerConfig)
class PNLPMixer(BaseFairseqModel):
    """Projection, bottleneck, blocks of MLP-Mixer, and the mean over the words.

    The blocks see N words always, with zeros in the place of those that a text has not. So a text
    has one result, whatever batch it sits in.

    Args:
        cfg: The sizes.
        dictionary: fairseq's, of the subwords.
    """

    def __init__(self, cfg: PNLPMixerConfig, dictionary):
        super().__init__()
        special = {dictionary.bos(), dictionary.eos(), dictionary.pad()}
        self.project = Projection(
            dictionary.symbols, special, cfg.max_words, cfg.hashes, cfg.filter_size, cfg.window
        )
        dim = cfg.embed_dim
        self.bottleneck = nn.Linear(self.project.features, dim)
        self.blocks = nn.ModuleList(_build_block(cfg) for _ in range(cfg.layers))
        self.norm = build_norm("layer", dim)
        self.apply(init_lecun)
        self.classification_heads = nn.ModuleDict()

    @classmethod
    def build_model(cls, cfg: PNLPMixerConfig, task) -> "PNLPMixer":
        """Build the model for the task's subwords.

        Raises:
            UserError: If a size is impossible.
        """
        for name in COUNTS:
            if getattr(cfg, name) < 1:
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} must be at least 1, not {getattr(cfg, name)}")
        if cfg.window < 0:
            raise UserError(f"--window cannot be negative ({cfg.window})")
        return cls(cfg, task.source_dictionary)

    def register_classification_head(self, name: str, num_classes: int) -> None:
        """Add an output layer; the task calls this."""
        self.classification_heads[name] = nn.Linear(self.bottleneck.out_features, num_classes)

    def forward(
        self, src_tokens: Tensor, src_lengths=None, features_only=True, classification_head_name=""
    ) -> tuple[Tensor, dict]:
        """Score texts.

        Args:
            src_tokens: Indices of subwords, padded. (B, L).
            src_lengths, features_only: Not needed; fairseq passes them.
            classification_head_name: Of the output layer.

        Returns:
            Logits, (B, K), and nothing else.
        """
        head = self.classification_heads[classification_head_name]
        return head(self.extract_features(src_tokens)), {}

    def extract_features(self, src_tokens: Tensor) -> Tensor:
        """The mean of the words' features. (B, C)."""
        counts, there = self.project(src_tokens)
        words = self.bottleneck(counts.to(self.bottleneck.weight.dtype))
        x = words.new_zeros(*there.shape, words.size(1))
        x[there] = words
        for block in self.blocks:
            x = block(x)
        there = there.unsqueeze(2)
        return (self.norm(x) * there).sum(1) / there.sum(1).clamp(min=1)


def _build_block(cfg: PNLPMixerConfig) -> ResMLPBlock:
    dim, hidden = cfg.embed_dim, cfg.token_ffn_embed_dim
    return ResMLPBlock(
        norm_1=build_norm("layer", dim),
        mix_tokens=build_mixer("mlp", dim, cfg.max_words, hidden_positions=hidden),
        scale_1=nn.Identity(),
        norm_2=build_norm("layer", dim),
        mix_channels=ChannelMLP(dim, cfg.ffn_embed_dim),
        scale_2=nn.Identity(),
        drop=Dropout(cfg.dropout),
    )


register_presets("pnlp_mixer", PNLPMixerConfig, PRESETS)
