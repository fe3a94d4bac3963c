"""A classifier folded for inference, as `ClassifierKernel` takes it.

Shapes: B images, N patches, C channels, K classes.
"""

import torch
from torch import nn

from resmlp_mt.extras import import_extra
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


def fold_or_trace(
    model: nn.Module, mean: list, std: list, image_size: int, int8: bool, shared: SharedWeights
) -> tuple[dict | None, bytes | None]:
    """The description of a classifier, or where it has no folds its graph.

    Arguments are as for `describe_classifier` and `trace_classifier`.

    Raises:
        UserError: If it has no folds, and torch cannot export it.
    """
    if can_fold(model):
        return describe_classifier(model, mean, std, int8, shared), None
    use = "a classifier without compiled form"
    traced = import_extra("resmlp_mt.export.traced_classifier", use)
    return None, traced.trace_classifier(model, mean, std, image_size, int8)


def can_fold(model: nn.Module) -> bool:
    """Whether all parts of a classifier have a folded form."""
    if not isinstance(model, ImageModel) or len(model.stages) != 1:
        return False
    (stage,), stem, pool = model.stages, model.stem, model.pool
    layers = pool.layers if isinstance(pool, ClassMLP) else []
    known = [(stem, PatchEmbedding), (stage.downsample, nn.Identity), (model.head, nn.Linear)]
    known += [(block, ResMLPBlock) for block in stage.blocks] + [(pool, (AveragePooling, ClassMLP))]
    return (
        all(isinstance(part, kinds) for part, kinds in known)
        and isinstance(stem.norm, nn.Identity)
        and isinstance(pool.norm, FOLDED_NORMS)
        and all(map(_has_folds, [*stage.blocks, *layers]))
        and all(map(_mixes_plainly, stage.blocks))
    )


def _has_folds(block: nn.Module) -> bool:
    """Whether the norms, the scales and the channel MLP of a block can be folded."""
    return (
        all(isinstance(norm, FOLDED_NORMS) for norm in (block.norm_1, block.norm_2))
        and all(isinstance(scale, LayerScale) for scale in (block.scale_1, block.scale_2))
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
def describe_classifier(
    model: ImageModel, mean: list, std: list, int8: bool, shared: SharedWeights
) -> dict:
    """The parts of a `ClassifierKernel`: the names of weights, and numbers.

    Args:
        model: A classifier that `can_fold`.
        mean, std: Of each channel, on a scale of 0 to 1, to normalise the pixels.
        int8, shared: As for `NamedWeights`.
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
        "patch": model.stem.proj.kernel_size[0],
        "centred": named.name_product(_fold_embedding(model.stem.proj, mean, std)),
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
    """The projection of patches with the image's normalisation. (C, in_chans rows columns).

    It takes pixels less 128, which fit into 8 bits as they are.
    """
    mean, std = (torch.tensor(list(values))[:, None, None] for values in (mean, std))
    bias = proj.bias - (proj.weight * mean / std).sum((1, 2, 3))
    rows = (proj.weight / (255 * std)).flatten(1)
    return Product(rows, bias + 128 * rows.sum(1))


def _name_gathering(named: NamedWeights, layer: ClassMLPLayer) -> dict[str, str]:
    """The one row of A, (1, N), and what is multiplied with the result and added to it."""
    _, alpha, beta = split_norm(layer.norm_1)
    row, scale = layer.aggregate.weight, layer.scale_1.gamma
    offset = scale * (beta * row.sum() + layer.aggregate.bias)
    parts = {"matrix": row, "scale": scale * alpha, "offset": offset[None]}
    return {name: named.weight(part.detach().numpy()) for name, part in parts.items()}
