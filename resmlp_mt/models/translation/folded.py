"""A translator folded for inference: the products that are left, and the matrices, as arrays.

`resmlp-mt export` writes them down. `EncoderKernel` and `DecoderKernel` compute with them.
"""

import numpy as np
import torch
from fairseq.modules import LearnedPositionalEmbedding, SinusoidalPositionalEmbedding
from torch import Tensor, nn

from resmlp_mt.models.folded import NamedWeights, SharedWeights
from resmlp_mt.models.translation.decoder import ResMLPDecoder
from resmlp_mt.models.translation.embedding import TokenEmbedding
from resmlp_mt.models.translation.encoder import ResMLPEncoder
from resmlp_mt.models.translation.rounded import ROUNDED
from resmlp_mt.nn.attention import SourceAttention
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock, ResMLPDecoderBlock
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.fold import (
    FoldedMixer,
    Product,
    fold_channels,
    fold_mixer,
    fold_product,
    has_bias,
    has_offset,
    make_offset,
    split_norm,
)
from resmlp_mt.nn.mixers import ToeplitzMatrix
from resmlp_mt.nn.norm import Affine, LayerScale

# The parts beside mixers that are folded here. One of another type may compute something else.
FOLDED = {
    ResMLPEncoder, ResMLPDecoder, TokenEmbedding, ResMLPBlock, ResMLPDecoderBlock, ChannelMLP,
    SourceAttention, Affine, LayerScale, Dropout, LearnedPositionalEmbedding,
    SinusoidalPositionalEmbedding, nn.Embedding, nn.GELU, nn.LayerNorm, nn.Linear, nn.ModuleList,
}  # fmt: skip


def find_unfolded(model) -> str | None:
    """The type of a part of a `ResMLPModel` that has no folded form; None if all have one."""
    sides = model.encoder, model.decoder
    mixers = [block.mix_tokens for side in sides for block in side.blocks]
    within = {part for mixer in mixers for part in mixer.modules()}
    others = [part for side in sides for part in side.modules() if part not in within]
    unfolded = [mixer for mixer in mixers if not _folds_itself(mixer)]
    unfolded += [part for part in others if type(part) not in FOLDED | ROUNDED]
    return type(unfolded[0]).__name__ if unfolded else None


def mixes_alike(model) -> bool:
    """Whether the matrices of the layers of each side can be stacked: one layout, as many heads.

    Args:
        model: A `ResMLPModel` whose mixers have a folded form.
    """
    for side in (model.encoder, model.decoder):
        mixers = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in side.blocks]
        matrices = [mixer.matrix for mixer in mixers]
        if len({(isinstance(m, ToeplitzMatrix), len(m(0, 1)[0])) for m in matrices}) > 1:
            return False
    return True


def _folds_itself(mixer: nn.Module) -> bool:
    """Whether its fold is of what it computes, not of what a class above it computes."""
    names = {"forward", "fold"}
    owner = next(kind for kind in type(mixer).__mro__ if names & kind.__dict__.keys())
    return "fold" in owner.__dict__


def fold_memory(encoder: ResMLPEncoder, decoder: ResMLPDecoder) -> Product:
    """The normalised output of the encoder -> a key and a value of each decoder layer."""
    sides = [side for b in decoder.blocks for side in (b.attend.key, b.attend.value)]
    return stack([fold_product(side, encoder.norm) for side in sides])


def stack(products: list[Product]) -> Product:
    """Products of the same input as one, whose outputs follow each other."""
    return Product(torch.cat([p.weight for p in products]), torch.cat([p.bias for p in products]))


@torch.no_grad()
def describe_decoder(decoder: ResMLPDecoder, int8: bool, shared: SharedWeights) -> dict:
    """The parts of a `DecoderKernel`: names of weights, and numbers.

    Args:
        decoder: The decoder.
        int8, shared: As for `NamedWeights`.
    """
    named = NamedWeights(int8, shared)
    epsilon, alpha, beta = split_norm(decoder.norm)
    layers = []
    for block in decoder.blocks:
        mixer = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
        query = fold_product(block.attend.query, block.norm_c)
        out = fold_product(block.attend.out, scale=block.scale_c.gamma)
        norms = block.norm_1, block.norm_c, block.norm_2
        layers.append(_describe(named, block, mixer, norms, query=query, out=out))
    return {
        "layers": layers,
        "heads": decoder.blocks[0].attend.heads,
        "hidden": decoder.blocks[0].mix_channels.fc1.out_features,
        "embedding": named.name_table(decoder.embed.tokens.weight),
        "embedding_scale": float(decoder.embed.scale),
        "output": named.name_table(decoder.output.weight),
        "norm": epsilon,
        "alpha": named.weight(alpha.float().numpy()),
        "beta": named.weight(beta.float().numpy()),
    }


@torch.no_grad()
def describe_encoder(
    encoder: ResMLPEncoder, decoder: ResMLPDecoder, int8: bool, shared: SharedWeights
) -> dict:
    """The parts of an `EncoderKernel`: names of weights, and numbers.

    Args:
        encoder, decoder: Of the model.
        int8, shared: As for `NamedWeights`.
    """
    named, layers = NamedWeights(int8, shared), []
    for block in encoder.blocks:
        mixer = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
        described = _describe(named, block, mixer, (block.norm_1, block.norm_2))
        for name in ("scale", "shift", "bias_scale"):
            described[name] = named.weight(getattr(mixer, name).float().numpy())
        layers.append(described)
    return {
        "layers": layers,
        "hidden": encoder.blocks[0].mix_channels.fc1.out_features,
        "embedding": named.name_table(encoder.embed.tokens.weight),
        "embedding_scale": float(encoder.embed.scale),
        "norm": split_norm(encoder.norm)[0],
        "memory": named.name_product(fold_memory(encoder, decoder)),
    }


def _describe(
    named: NamedWeights, block, mixer: FoldedMixer, norms: tuple[nn.Module, ...], **others: Product
) -> dict:
    """The epsilons of a block's norms, and its products by the names of their weights."""
    first, second = fold_channels(block)
    mix = mixer.gate and stack([mixer.gate, mixer.value])
    products = {"mix": mix, "project": mixer.out, **others, "first": first, "second": second}
    names = {name: product and named.name_product(product) for name, product in products.items()}
    return {"norms": [split_norm(norm)[0] for norm in norms]} | names


def describe_translator(model, int8: bool, shared: SharedWeights) -> dict:
    """The config of a `FoldedSearch`, whose arrays are the weights and those of `describe_mixing`.

    Args:
        model: A `ResMLPModel`.
        int8, shared: As for `NamedWeights`.
    """
    return {
        "source_positions": model.encoder.longest,
        "target_positions": model.decoder.longest,
        "encoder": describe_encoder(model.encoder, model.decoder, int8, shared),
        "decoder": describe_decoder(model.decoder, int8, shared),
    }


@torch.no_grad()
def describe_mixing(model) -> dict[str, np.ndarray]:
    """The matrices of both sides, with scales, biases, offsets and positions, by name.

    Args:
        model: A `ResMLPModel`.
    """
    encoder, decoder = model.encoder, model.decoder
    source = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in encoder.blocks]
    target = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in decoder.blocks]
    weights = {
        "encoder.matrix": torch.stack([_matrix(mixer.matrix, encoder.longest) for mixer in source]),
        "decoder.matrix": torch.stack([_matrix(mixer.matrix, decoder.longest) for mixer in target]),
        "decoder.scale": torch.cat([mixer.scale for mixer in target]),
    }
    if any(map(has_bias, source)):
        weights["encoder.bias"] = torch.stack([_bias(m.matrix, encoder.longest) for m in source])
    if any(map(has_offset, target)):
        offsets = [make_offset(mixer, decoder.longest) for mixer in target]
        weights["decoder.offset"] = torch.cat(offsets, dim=1)
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        if side.embed.positions is not None:
            weights[f"{name}.positions"] = _positions(side.embed, side.longest)
    return {name: np.ascontiguousarray(weight.float().numpy()) for name, weight in weights.items()}


def _matrix(matrix: nn.Module, positions: int) -> Tensor:
    """A, (H, N, N), or the weights of a Toeplitz A from the distance 1 - N to N - 1."""
    if not isinstance(matrix, ToeplitzMatrix):
        return matrix(0, positions)[0]
    # Nothing where it has no weight: ahead of a causal one, and beyond what it sees.
    first, last = 1 - positions, positions - 1
    return nn.functional.pad(matrix.weight, (matrix.nearest - first, last - matrix.farthest))


def _bias(matrix: nn.Module, positions: int) -> Tensor:
    """The bias of A, (H, N); zeros where it has none."""
    rows, bias = matrix(0, positions)
    return rows.new_zeros(rows.shape[:2]) if bias is None else bias


def _positions(embed: nn.Module, positions: int) -> Tensor:
    """The vectors that are added to the embeddings at each position. (N, C)."""
    tokens = torch.full((1, positions), embed.tokens.padding_idx + 1)
    return embed.positions(tokens)[0]
