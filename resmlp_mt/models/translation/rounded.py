"""A translator whose products are rounded as its export in 8 bits computes them."""

from torch import nn

from resmlp_mt.models.translation.decoder import ResMLPDecoder
from resmlp_mt.models.translation.encoder import ResMLPEncoder
from resmlp_mt.nn.mixers import GatedMixer
from resmlp_mt.nn.rounding import (
    RoundedAffine,
    RoundedEmbedding,
    RoundedLayerNorm,
    RoundedLinear,
    round_norm,
)

# They fold as what they stand for.
ROUNDED = {RoundedAffine, RoundedEmbedding, RoundedLayerNorm, RoundedLinear}


def round_products(encoder: ResMLPEncoder, decoder: ResMLPDecoder, bits: int) -> None:
    """Put rounded layers, with the same weights, in the place of all that `folded.py` rounds.

    Args:
        encoder, decoder: Of the model.
        bits: Of a weight.
    """
    memory = encoder.norm = round_norm(encoder.norm)
    for side in (encoder, decoder):
        side.embed.tokens = RoundedEmbedding(side.embed.tokens, bits)
        for block in side.blocks:
            mixer = block.mix_tokens
            if isinstance(mixer, GatedMixer):  # all others mix the norm's output as it is
                block.norm_1 = _round(mixer, bits, block.norm_1, "gate", "value")
                _round(mixer, bits, None, *(["out"] if hasattr(mixer, "out") else []))
            block.norm_2 = _round(block.mix_channels, bits, block.norm_2, "fc1")
            _round(block.mix_channels, bits, None, "fc2")
    for block in decoder.blocks:
        block.norm_c = _round(block.attend, bits, block.norm_c, "query")
        for name in ("key", "value"):
            setattr(block.attend, name, RoundedLinear(getattr(block.attend, name), bits, memory))
        _round(block.attend, bits, None, "out")
    _round(decoder, bits, None, "output")


def _round(part: nn.Module, bits: int, norm: nn.Module | None, *names: str) -> nn.Module | None:
    """Round linear layers of a part. Returns the norm before them, for them."""
    rounded = None if norm is None else round_norm(norm)
    for name in names:
        setattr(part, name, RoundedLinear(getattr(part, name), bits, rounded))
    return rounded
