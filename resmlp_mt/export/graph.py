"""ONNX graphs, written as the model reads: nodes, products, and the residual stream."""

from functools import partial

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from resmlp_mt.files.export_layout import WEIGHTS
from resmlp_mt.models.folded import NamedWeights, SharedWeights
from resmlp_mt.nn.fold import Product, fold_channels, split_norm

_ONNX, _MICROSOFT = "", "com.microsoft"
# Not in ONNX itself; ONNX Runtime has them.
_FUSED = ("DynamicQuantizeMatMul", "Gelu", "MultiHeadAttention")


class Graph(NamedWeights):
    """Collects nodes: `graph.MatMul(x, y)` adds one and returns the name of its output.

    Args:
        int8: Keep the weights of products as int8.
        shared: Where the weights of products and embeddings go. Without it they go into the graph.
    """

    def __init__(self, int8: bool, shared: SharedWeights | None = None):
        super().__init__(int8, shared)
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

    def weight(self, value: np.ndarray) -> str:
        """Add a weight of a product or an embedding."""
        if self.shared is None:
            return self.constant(value)
        name = super().weight(value)
        if name not in [tensor.name for tensor in self.constants]:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            tensor = onnx.TensorProto(name=name, data_type=kind, dims=value.shape)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=WEIGHTS)
            self.constants.append(tensor)
        return name

    def integers(self, *values: int) -> str:
        """Add a constant of 64-bit integers."""
        return self.constant(np.array(values, np.int64))

    def product(self, x: str, product: Product) -> str:
        """weight x + bias. (..., in) -> (..., out)."""
        names = self.name_product(product)
        if not self.int8:
            return self.Add(self.MatMul(x, names["weight"]), names["bias"])
        return self.DynamicQuantizeMatMul(x, names["weight"], names["scales"], "", names["bias"])

    def embed(self, tokens: str, table: Tensor, scale: float) -> str:
        """Rows of the table times a number. (...) -> (..., C)."""
        names = self.name_table(table)
        scale = self.constant(np.array([scale], np.float32))
        rows = self.Gather(names["weight"], tokens)
        if not self.int8:
            return self.Mul(rows, scale)
        rows = self.Cast(rows, to=onnx.TensorProto.FLOAT)
        # What is constant ONNX Runtime computes once, at the start.
        scales = self.Mul(self.Unsqueeze(names["scales"], self.integers(1)), scale)
        return self.Mul(rows, self.Gather(scales, tokens))

    def score(self, x: str, table: Tensor) -> str:
        """Products with all rows of a table, which may be that of `embed`. (..., C) -> (..., V)."""
        names = self.name_table(table)
        weight = self.Transpose(names["weight"], perm=[1, 0])
        if not self.int8:
            return self.MatMul(x, weight)
        return self.DynamicQuantizeMatMul(x, weight, names["scales"])

    def select(self, table: Tensor, rows: str) -> dict[str, str]:
        """Some rows of a table, as `score_selected` takes them; by the name of its input."""
        names = self.name_table(table)
        found = {"weight": self.Transpose(self.Gather(names["weight"], rows), perm=[1, 0])}
        if self.int8:
            found["scales"] = self.Gather(names["scales"], rows)
        return found

    def score_selected(self, x: str) -> str:
        """`score` with the rows that `select` took, which are inputs. (..., C) -> (..., K)."""
        kind = onnx.TensorProto.INT8 if self.int8 else onnx.TensorProto.FLOAT
        weight = self.input("weight", kind, "C", "K")
        if not self.int8:
            return self.MatMul(x, weight)
        scales = self.input("scales", onnx.TensorProto.FLOAT, "K")
        return self.DynamicQuantizeMatMul(x, weight, scales)

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

    def normalise_wholly(self, norm: nn.Module) -> str:
        """The stream with the norm's alpha and beta, for what comes after is not to be changed."""
        epsilon, alpha, beta = split_norm(norm)
        alpha, beta = self.graph.constant(alpha), self.graph.constant(beta)
        if epsilon is None:
            return self.graph.Add(self.graph.Mul(self.x, alpha), beta)
        return self.graph.LayerNormalization(self.x, alpha, beta, epsilon=epsilon)


def mix_channels(graph: Graph, block, x: str) -> str:
    """The channel MLP of a block, of the normalised x. (..., C) -> (..., C)."""
    first, second = fold_channels(block)
    return graph.product(graph.Gelu(graph.product(x, first)), second)


def by_head(graph: Graph, channels: Tensor, heads: int) -> str:
    """A constant for features split by head. (C,) -> (H, 1, C / H)."""
    return graph.constant(channels.reshape(heads, 1, -1))
