"""The ONNX graph of a folded classifier, from pixels to logits.

Shapes: B images, N patches, C channels, K classes.
"""

import torch
from onnx import TensorProto
from torch import nn

from resmlp_mt.export.graph import Graph, Stream, mix_channels
from resmlp_mt.models.folded import NamedWeights, SharedWeights
from resmlp_mt.models.images import ImageModel
from resmlp_mt.nn.blocks import ChannelMLP, ResMLPBlock
from resmlp_mt.nn.fold import (
    FOLDED_NORMS,
    FoldedMixer,
    Product,
    fold_channels,
    fold_mixer,
    fold_product,
    make_offset,
    split_norm,
)
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.patches import PatchEmbedding
from resmlp_mt.nn.pooling import AveragePooling, ClassMLP, ClassMLPLayer


def can_fold(model: nn.Module) -> bool:
    """Whether a graph can be made of a classifier's folded parts."""
    if not isinstance(model, ImageModel) or len(model.stages) != 1:
        return False
    (stage,), pool = model.stages, model.pool
    layers = pool.layers if isinstance(pool, ClassMLP) else []
    return (
        isinstance(model.stem, PatchEmbedding)
        and isinstance(model.stem.norm, nn.Identity)
        and isinstance(stage.downsample, nn.Identity)
        and all(isinstance(block, ResMLPBlock) and _has_folds(block) for block in stage.blocks)
        and all(_mixes_plainly(block) for block in stage.blocks)
        and all(map(_has_folds, layers))
        and isinstance(pool, (AveragePooling, ClassMLP))
        and isinstance(pool.norm, FOLDED_NORMS)
        and isinstance(model.head, nn.Linear)
    )


def _has_folds(block: nn.Module) -> bool:
    """Whether the norms, the scales and the channel MLP of a block can be folded."""
    return (
        isinstance(block.norm_1, FOLDED_NORMS)
        and isinstance(block.norm_2, FOLDED_NORMS)
        and isinstance(block.scale_1, LayerScale)
        and isinstance(block.scale_2, LayerScale)
        and isinstance(block.mix_channels, ChannelMLP)
        and isinstance(block.mix_channels.fc1, nn.Linear)
    )


def _mixes_plainly(block: ResMLPBlock) -> bool:
    """Whether the mixer has a folded form, of one matrix and no gate."""
    if not hasattr(block.mix_tokens, "fold"):
        return False
    mixer = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
    return mixer.gate is None and len(mixer.matrix(0, 1)[0]) == 1


@torch.no_grad()
def build_classifier(
    model: ImageModel, mean: list, std: list, int8: bool, shared: SharedWeights | None = None
) -> bytes:
    """Input: pixels, uint8 (B, in_chans, rows, columns). Output: logits (B, K).

    Args:
        model: A classifier that `can_fold`.
        mean, std: What the pixels of each channel are normalised with, on a scale of 0 to 1.
        int8, shared: As for `Graph`.
    """
    (stage,) = model.stages
    graph, patches = Graph(int8, shared), stage.grid[0] * stage.grid[1]
    side = model.image_size
    pixels = graph.input("pixels", TensorProto.UINT8, "B", len(mean), side, side)
    stream = Stream(graph, _embed(graph, model.stem.proj, mean, std, pixels))
    for block in stage.blocks:
        mixer = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
        matrix, scale, offset = _name_mixer(graph, mixer, patches).values()
        y = graph.MatMul(matrix, stream.normalise(block.norm_1))
        stream.add(graph.Add(graph.Mul(y, scale), offset))
        stream.add(mix_channels(graph, block, stream.normalise(block.norm_2)))
    if isinstance(model.pool, AveragePooling):
        norm = model.pool.norm  # its alpha and beta commute with the mean
        x = graph.ReduceMean(stream.normalise(norm), graph.integers(1), keepdims=0)
    else:
        norm = model.pool.norm
        x = _aggregate(graph, model.pool, stream)
    return graph.build(logits=graph.product(x, fold_product(model.head, norm)))


@torch.no_grad()
def describe_classifier(
    model: ImageModel, mean: list, std: list, int8: bool, shared: SharedWeights
) -> dict:
    """What `NativeClassifier` is made of: the names of weights of the graph, and numbers.

    Args:
        model, mean, std, int8, shared: As for `build_classifier`.
    """
    (stage,) = model.stages
    named, patches = NamedWeights(int8, shared), stage.grid[0] * stage.grid[1]
    pool, layers = model.pool, []
    if isinstance(pool, ClassMLP):
        layers = [_describe(named, layer, _name_gathering(named, layer)) for layer in pool.layers]
    blocks = []
    for block in stage.blocks:
        mixer = fold_mixer(block.mix_tokens, block.norm_1, block.scale_1.gamma)
        blocks.append(_describe(named, block, _name_mixer(named, mixer, patches)))
    return {
        "embed": _name_embedding(named, model.stem.proj, mean, std),
        "centred": named.name_product(_centre(_fold_embedding(model.stem.proj, mean, std))),
        "blocks": blocks,
        "layers": layers,
        "hidden": stage.blocks[0].mix_channels.fc1.out_features,
        "embedding": named.weight(pool.embedding.numpy()) if layers else None,
        "norm": split_norm(pool.norm)[0],
        "head": named.name_product(fold_product(model.head, pool.norm)),
    }


def _describe(named: NamedWeights, block: nn.Module, mixing: dict[str, str]) -> dict:
    """A block, or a layer of the class embedding."""
    first, second = map(named.name_product, fold_channels(block))
    norms = [split_norm(norm)[0] for norm in (block.norm_1, block.norm_2)]
    return {"norms": norms, "first": first, "second": second} | mixing


def _name_mixer(named: NamedWeights, mixer: FoldedMixer, patches: int) -> dict[str, str]:
    """A (N, N), and what is multiplied with A x, (C,), and added to it, (N, C)."""
    rows, _ = mixer.matrix(0, patches)
    parts = {"matrix": rows[0], "scale": mixer.scale, "offset": make_offset(mixer, patches)}
    return {name: named.weight(part.detach().numpy()) for name, part in parts.items()}


def _fold_embedding(proj: nn.Conv2d, mean: list, std: list) -> Product:
    """The projection of patches, (C, in_chans, rows, columns), with the image's normalisation."""
    mean, std = (torch.tensor(list(values))[:, None, None] for values in (mean, std))
    bias = proj.bias - (proj.weight * mean / std).sum((1, 2, 3))
    return Product(proj.weight / (255 * std), bias)


def _centre(embedding: Product) -> Product:
    """The same for pixels less 128, which fit into 8 bits as they are."""
    rows = embedding.weight.flatten(1)
    return Product(rows, embedding.bias + 128 * rows.sum(1))


def _name_embedding(named: NamedWeights, proj: nn.Conv2d, mean: list, std: list) -> dict[str, str]:
    parts = vars(_fold_embedding(proj, mean, std))
    return {name: named.weight(part.detach().numpy()) for name, part in parts.items()}


def _embed(graph: Graph, proj: nn.Conv2d, mean: list, std: list, pixels: str) -> str:
    """The patches of the normalised image. (B, N, C)."""
    size = list(proj.kernel_size)
    pixels = graph.Cast(pixels, to=TensorProto.FLOAT)
    parts = _name_embedding(graph, proj, mean, std).values()
    x = graph.Conv(pixels, *parts, kernel_shape=size, strides=size)  # (B, C, rows, columns)
    return graph.Transpose(graph.Reshape(x, graph.integers(0, 0, -1)), perm=[0, 2, 1])


def _aggregate(graph: Graph, pool: nn.Module, patches: Stream) -> str:
    """The class embedding that the class-MLP layers make, normalised. (B, C)."""
    embedding = Stream(graph, graph.constant(pool.embedding[None, None]))
    for layer in pool.layers:
        embedding.add(_gather(graph, layer, patches))
        embedding.add(mix_channels(graph, layer, embedding.normalise(layer.norm_2)))
    return graph.Squeeze(embedding.normalise(pool.norm), graph.integers(1))


def _gather(graph: Graph, layer: ClassMLPLayer, patches: Stream) -> str:
    """scale_1 (a norm_1(x)), folded as the rows of A are. (B, 1, C)."""
    row, scale, offset = _name_gathering(graph, layer).values()
    y = graph.MatMul(row, patches.normalise(layer.norm_1))
    return graph.Add(graph.Mul(y, scale), offset)


def _name_gathering(named: NamedWeights, layer: ClassMLPLayer) -> dict[str, str]:
    """The one row of A, (1, N), and what is multiplied with the result and added to it."""
    _, alpha, beta = split_norm(layer.norm_1)
    row, scale = layer.aggregate.weight, layer.scale_1.gamma
    offset = scale * (beta * row.sum() + layer.aggregate.bias)
    parts = {"matrix": row, "scale": scale * alpha, "offset": offset[None]}
    return {name: named.weight(part.detach().numpy()) for name, part in parts.items()}
