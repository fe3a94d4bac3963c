"""ONNX graphs of the folded translator: one encodes a batch, the other scores one step of a search.

The matrices of the token mixers depend on lengths alone. They are inputs: `OnnxBackend` slices
them once for a length. The products may be int8. Then ONNX Runtime quantizes what comes in as it
goes, with one scale for a batch, and the weights have one scale for each output.

Shapes as in `nn/__init__.py`. Besides, t is positions before this one, and n what all steps before
left.
"""

import numpy as np
import torch
from onnx import TensorProto, helper

from resmlp_mt.export.graph import Graph, Stream, by_head, mix_channels
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.translation import ResMLPDecoder, ResMLPEncoder
from resmlp_mt.models.translation.folded import fold_memory, stack
from resmlp_mt.nn.fold import (
    FoldedMixer,
    fold_mixer,
    fold_product,
    has_bias,
    has_offset,
)

_ONE = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])


@torch.no_grad()
def build_encoder(
    encoder: ResMLPEncoder, decoder: ResMLPDecoder, int8: bool, shared: SharedWeights
) -> bytes:
    """Tokens -> the keys and values of every decoder layer's attention.

    Inputs: tokens (B, S), padded on the right; mask (B, S, 1), 1 where a token is and 0 where not;
    matrix_<layer> (H, S, S); bias_<layer> (H, S, 1) where any A has one; positions (S, C) where
    they are added to the embeddings. Output: memory (2 D, B, E, S, C / E), a key and a value a
    layer.

    Args:
        encoder, decoder: Of the model.
        int8, shared: As for `Graph`.
    """
    graph = Graph(int8, shared)
    tokens = graph.input("tokens", TensorProto.INT64, "B", "S")
    mask = graph.input("mask", TensorProto.FLOAT, "B", "S", 1)
    x = graph.embed(tokens, encoder.embed.tokens.weight, encoder.embed.scale)
    if encoder.embed.positions is not None:
        x = graph.Add(x, graph.input("positions", TensorProto.FLOAT, "S", "C"))
    stream = Stream(graph, x)
    mixers = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in encoder.blocks]
    biased = any(map(has_bias, mixers))
    for layer, (block, mixer) in enumerate(zip(encoder.blocks, mixers, strict=True)):
        y = stream.normalise(block.norm_1)
        stream.add(_mix_both_ways(graph, layer, mixer, y, mask, biased))
        stream.add(mix_channels(graph, block, stream.normalise(block.norm_2)))
    memory = graph.product(stream.normalise(encoder.norm), fold_memory(encoder, decoder))
    sides, heads = 2 * len(decoder.blocks), decoder.blocks[0].attend.heads
    memory = graph.Reshape(memory, graph.integers(0, 0, sides, heads, -1))
    return graph.build(memory=graph.Transpose(memory, perm=[2, 0, 3, 1, 4]))


def _mix_both_ways(
    graph: Graph, layer: int, mixer: FoldedMixer, x: str, mask: str, biased: bool
) -> str:
    matrix = graph.input(f"matrix_{layer}", TensorProto.FLOAT, "H", "S", "S")
    heads = mixer.matrix(0, 1)[0].size(0)
    gate, value = _gate(graph, mixer, x)
    value = graph.Reshape(graph.Mul(value, mask), graph.integers(0, 0, heads, -1))
    y = graph.MatMul(matrix, graph.Transpose(value, perm=[0, 2, 1, 3]))  # (B, H, S, C / H)
    if mixer.gate is None:
        y = graph.Mul(y, by_head(graph, mixer.scale, heads))
        sums = graph.MatMul(matrix, graph.Unsqueeze(mask, graph.integers(1)))  # (B, H, S, 1)
        y = graph.Add(y, graph.Mul(sums, by_head(graph, mixer.shift, heads)))
    if biased:
        bias = graph.input(f"bias_{layer}", TensorProto.FLOAT, "H", "S", 1)
        y = graph.Add(y, graph.Mul(bias, by_head(graph, mixer.bias_scale, heads)))
    y = graph.Reshape(graph.Transpose(y, perm=[0, 2, 1, 3]), graph.integers(0, 0, -1))
    return _apply_gate(graph, mixer, gate, y)


def _gate(graph: Graph, mixer: FoldedMixer, x: str) -> tuple[str, str]:
    """What A's output is multiplied with, and what A mixes: x itself where nothing is gated."""
    if not mixer.gate:
        return x, x
    both = graph.product(x, stack([mixer.gate, mixer.value]))
    return tuple(graph.Split(both, outputs=2, axis=2, num_outputs=2))


def _apply_gate(graph: Graph, mixer: FoldedMixer, gate: str, y: str) -> str:
    """Gate what A returned, and project it."""
    if not mixer.gate:
        return y
    if not mixer.out:
        return graph.Mul(gate, y)
    return graph.product(graph.Mul(graph.Sigmoid(gate), y), mixer.out)


@torch.no_grad()
def build_step(
    decoder: ResMLPDecoder,
    banned: list[int],
    end: int,
    int8: bool,
    shared: SharedWeights,
    selects: bool = False,
) -> bytes:
    """The best continuations of every beam, and what the mixers remember of this position.

    Inputs: tokens (B, M), the last ones; scores (B, M, 1), of the beams so far; history (n, D C),
    what earlier steps returned; ancestors (t, B, M), the rows of it that each beam comes from;
    row (t, 1, 1, D C) and now_<layer> (1, C), what the mixing matrices multiply them and this
    position with; offset (1, D C) where the mixers have one; position (1, C) where positions are
    added;
    key_<layer> and value_<layer> (B, E, S, C / E); mask (B, 1, M, S), 0 where a token is, else far
    below; width (1,), continuations of a beam to look at; best (1,), those to return. Where it
    selects also candidates (K,), the symbols that are left, the end first; barred (B, 1, K), what
    is added to their logits; weight (C, K), and scales (K,) in int8, from `build_selection`.

    Outputs: best_scores (B, best), sorted; best_tokens (B, best); best_places (B, best), beam times
    width plus something; ends (B, M, 1), the score of ending here; values (B, M, D C); query
    (B, M, C), what the last layer's attention asks with, and log_p (B, M, V), of the next tokens,
    which cost nothing where they are not taken. Where it selects log_p is (B, M, K).

    Args:
        decoder: The decoder.
        banned: Tokens that no translation may hold.
        end: The end of a sentence.
        int8, shared: As for `Graph`.
        selects: Choose among candidates, not among all tokens.
    """
    graph, layers = Graph(int8, shared), len(decoder.blocks)
    tokens = graph.input("tokens", TensorProto.INT64, "B", "M")
    x = graph.embed(tokens, decoder.embed.tokens.weight, decoder.embed.scale)
    if decoder.embed.positions is not None:
        x = graph.Add(x, graph.input("position", TensorProto.FLOAT, 1, "C"))
    mixers = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in decoder.blocks]
    past = _remember(graph, layers, any(map(has_offset, mixers)))
    stream, values = Stream(graph, x), []
    mask = graph.input("mask", TensorProto.FLOAT, "B", 1, "M", "S")
    for layer, (block, mixer) in enumerate(zip(decoder.blocks, mixers, strict=True)):
        gate, y = _gate(graph, mixer, stream.normalise(block.norm_1))
        values.append(y)
        now = graph.input(f"now_{layer}", TensorProto.FLOAT, 1, "C")
        y = graph.Add(past[layer], graph.Mul(y, now))
        stream.add(_apply_gate(graph, mixer, gate, y))
        query = graph.product(
            stream.normalise(block.norm_c), fold_product(block.attend.query, block.norm_c)
        )
        sides = [
            graph.input(f"{side}_{layer}", TensorProto.FLOAT, "B", block.attend.heads, "S", "C/E")
            for side in ("key", "value")
        ]
        y = graph.MultiHeadAttention(query, *sides, "", "", mask, num_heads=block.attend.heads)
        stream.add(graph.product(y, fold_product(block.attend.out, scale=block.scale_c.gamma)))
        stream.add(mix_channels(graph, block, stream.normalise(block.norm_2)))
    # Nothing is folded into the output layer, whose weight may be that of the embeddings.
    x = stream.normalise_wholly(decoder.norm)
    if selects:
        barred = graph.input("barred", TensorProto.FLOAT, "B", 1, "K")
        log_p = graph.LogSoftmax(graph.Add(graph.score_selected(x), barred), axis=-1)
        choice = _choose(graph, log_p, 0)
        candidates = graph.input("candidates", TensorProto.INT64, "K")
        choice["best_tokens"] = graph.Gather(candidates, choice["best_tokens"])
    else:
        log_p = graph.LogSoftmax(graph.score(x, decoder.output.weight), axis=-1)
        ban = np.zeros(decoder.output.out_features, np.float32)
        ban[banned] = -np.inf
        choice = _choose(graph, log_p, end, ban)
    return graph.build(
        **choice,
        values=graph.Concat(*values, axis=2),
        query=query,
        log_p=log_p,
    )


def _remember(graph: Graph, layers: int, offset: bool) -> list[str]:
    """What the earlier positions add to this one. D of (B, M, C)."""
    history = graph.input("history", TensorProto.FLOAT, "n", "DC")
    ancestors = graph.input("ancestors", TensorProto.INT64, "t", "B", "M")
    row = graph.input("row", TensorProto.FLOAT, "t", 1, 1, "DC")
    past = graph.Mul(graph.Gather(history, ancestors), row)
    # A product with ones is more than twice as fast as ONNX Runtime's sum.
    ones = graph.ConstantOfShape(graph.Shape(ancestors, start=0, end=1), value=_ONE)
    past = graph.MatMul(ones, graph.Flatten(past, axis=1))
    beams = graph.Shape(ancestors, start=1)
    past = graph.Reshape(past, graph.Concat(beams, graph.integers(-1), axis=0))
    if offset:
        past = graph.Add(past, graph.input("offset", TensorProto.FLOAT, 1, "DC"))
    return graph.Split(past, outputs=layers, axis=2, num_outputs=layers) if layers > 1 else [past]


@torch.no_grad()
def build_selection(decoder: ResMLPDecoder, int8: bool, shared: SharedWeights) -> bytes:
    """The rows of the output layer for some tokens.

    Input: candidates (K,). Outputs: weight (C, K), and scales (K,) in int8.

    Args:
        decoder: The decoder.
        int8, shared: As for `Graph`.
    """
    graph = Graph(int8, shared)
    candidates = graph.input("candidates", TensorProto.INT64, "K")
    return graph.build(**graph.select(decoder.output.weight, candidates))


def _choose(graph: Graph, log_p: str, end: int, ban: np.ndarray | None = None) -> dict[str, str]:
    width = graph.input("width", TensorProto.INT64, 1)
    best = graph.input("best", TensorProto.INT64, 1)
    scores = graph.input("scores", TensorProto.FLOAT, "B", "M", 1)
    found, tokens = graph.TopK(log_p, width, outputs=2, axis=2, sorted=0)
    found = graph.Add(found, scores)
    if ban is not None:
        found = graph.Add(found, graph.Gather(graph.constant(ban), tokens))
    flat = graph.integers(0, -1)
    found, places = graph.TopK(graph.Reshape(found, flat), best, outputs=2, axis=1)
    return {
        "best_scores": found,
        "best_places": places,
        "best_tokens": graph.GatherElements(graph.Reshape(tokens, flat), places, axis=1),
        "ends": graph.Add(graph.Gather(log_p, graph.integers(end), axis=2), scores),
    }
