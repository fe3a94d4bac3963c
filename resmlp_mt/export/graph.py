"""ONNX graphs, written as the model reads: nodes, products, and the residual stream."""

from functools import partial

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from resmlp_mt.nn.fold import Product, fold_channels, split_norm

_ONNX, _MICROSOFT = "", "com.microsoft"
# Not in ONNX itself; ONNX Runtime has them.
_FUSED = ("DynamicQuantizeMatMul", "GatherBlockQuantized", "Gelu", "MultiHeadAttention")
# Channels of an int8 embedding that share a scale.
_BLOCK = 32


class Graph:
    """Collects nodes: `graph.MatMul(x, y)` adds one and returns the name of its output.

    Args:
        int8: Keep the weights of products as int8.
    """

    def __init__(self, int8: bool):
        self.int8 = int8
        self.nodes: list = []
        self.inputs: list = []
        self.outputs: dict[str, str] = {}
        self.constants: list = []

    def __getattr__(self, operator: str):
        if not operator[0].isupper():
            raise AttributeError(operator)
        return partial(self.node, operator)

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes):
        """Add a node; returns the name of its output, or a list of the names."""
        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        domain = _MICROSOFT if operator in _FUSED else _ONNX
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name: str, kind: int, *shape: int | str) -> str:
        """Add an input of that element type and shape; a name stands for a length that varies."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value) -> str:
        """Add a constant."""
        if isinstance(value, Tensor):
            value = value.detach().numpy()
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        """Add a constant of 64-bit integers."""
        return self.constant(np.array(values, np.int64))

    def product(self, x: str, product: Product) -> str:
        """weight x + bias. (..., in) -> (..., out)."""
        weight, bias = product.weight.detach().numpy(), product.bias.detach().numpy()
        if not self.int8:
            return self.Add(self.MatMul(x, self.constant(weight.T)), self.constant(bias))
        scale = np.maximum(np.abs(weight).max(1) / 127, 1e-12).astype(np.float32)
        rounded = np.round(weight / scale[:, None]).astype(np.int8).T
        zeros = np.zeros(len(scale), np.int8)
        return self.DynamicQuantizeMatMul(x, *map(self.constant, (rounded, scale, zeros, bias)))

    def embed(self, tokens: str, table: Tensor, scale: float) -> str:
        """Rows of the table. (...) -> (..., C)."""
        table = table.detach().numpy() * np.float32(scale)
        if not self.int8:
            return self.Gather(self.constant(table), tokens)
        symbols, channels = table.shape
        blocks = -(-channels // _BLOCK)
        split = np.pad(table, ((0, 0), (0, blocks * _BLOCK - channels)))
        split = split.reshape(symbols, blocks, _BLOCK)
        scales = np.maximum(np.abs(split).max(2) / 127, 1e-12).astype(np.float32)
        rounded = np.round(split / scales[..., None]).reshape(symbols, -1)[:, :channels]
        parts = self.constant((rounded + 128).astype(np.uint8)), tokens, self.constant(scales)
        sizes = dict(bits=8, block_size=_BLOCK, gather_axis=0, quantize_axis=1)
        return self.GatherBlockQuantized(*parts, **sizes)

    def build(self, **outputs: str) -> bytes:
        """The model, whose outputs have these names."""
        renamed = {value: name for name, value in outputs.items()}
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "resmlp", self.inputs, results, self.constants)
        versions = [helper.make_opsetid(_ONNX, 18), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10).SerializeToString()


class Stream:
    """The residual stream, x = x + sublayer(norm(x)), with norms whose alpha and beta are folded.

    Args:
        graph: Where the nodes go.
        x: What the stream begins with.
    """

    def __init__(self, graph: Graph, x: str):
        self.graph, self.x = graph, x

    def add(self, branch: str) -> None:
        """Add what a sublayer returned."""
        self.x = self.graph.Add(self.x, branch)

    def normalise(self, norm: nn.Module) -> str:
        """The stream without the norm's alpha and beta."""
        epsilon, alpha, _ = split_norm(norm)
        if epsilon is None:
            return self.x
        ones = self.graph.constant(torch.ones_like(alpha))
        return self.graph.LayerNormalization(self.x, ones, epsilon=epsilon)


def mix_channels(graph: Graph, block, x: str) -> str:
    """The channel MLP of a block, of the normalised x. (..., C) -> (..., C)."""
    first, second = fold_channels(block)
    return graph.product(graph.Gelu(graph.product(x, first)), second)


def by_head(graph: Graph, channels: Tensor, heads: int) -> str:
    """A constant for features split by head. (C,) -> (H, 1, C / H)."""
    return graph.constant(channels.reshape(heads, 1, -1))
