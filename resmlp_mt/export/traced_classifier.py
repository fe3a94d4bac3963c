"""The ONNX graph of any classifier, by torch's own exporter. Standardised weights are constants.

Shapes: B images, K classes.
"""

import copy
import io
import warnings
from contextlib import redirect_stdout

import numpy as np
import onnx
import torch
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.quantization.quant_utils import add_pre_process_metadata
from torch import Tensor, nn

from resmlp_mt.data.augment import Normalise
from resmlp_mt.engines.onnx_graph import start_graph
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import scratch_folder
from resmlp_mt.nn.standardised import StandardisedConv

_OPSET = 18


@torch.no_grad()
def trace_classifier(model: nn.Module, mean: list, std: list, image_size: int, int8: bool) -> bytes:
    """Input: pixels, uint8 (B, in_chans, rows, columns). Output: logits (B, K).

    Args:
        model: Maps normalised images to logits.
        mean, std: Of each channel, on a scale of 0 to 1, to normalise the pixels.
        image_size: Side of the images in pixels.
        int8: Keep the weights of products as int8.

    Raises:
        UserError: If torch cannot export the model, or what it exported gives other logits.
    """
    whole = nn.Sequential(Normalise(mean, std), _fold(model)).eval()
    shape = 3, len(mean), image_size, image_size
    chance = torch.Generator().manual_seed(1)  # the same images at each export
    pixels = torch.randint(256, shape, dtype=torch.uint8, generator=chance)
    graph = _shorten(onnx.load_from_string(_export(whole, pixels[:2])))
    _compare(graph.SerializeToString(), whole, pixels)
    return (_shorten(_quantise(graph)) if int8 else graph).SerializeToString()


def _fold(model: nn.Module) -> nn.Module:
    """A copy in which no weights are standardised at each call."""
    model = copy.deepcopy(model)
    for part in list(model.modules()):
        for name, child in part.named_children():
            if isinstance(child, StandardisedConv):
                setattr(part, name, child.fold())
    return model


def _export(model: nn.Module, pixels: Tensor) -> bytes:
    buffer, batch = io.BytesIO(), {0: "B"}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # ONNX does not know torch's fused attention
    try:
        # Its warnings are about itself: torch has a newer exporter, which needs another package.
        # Where it fails, it prints all that it has.
        with warnings.catch_warnings(action="ignore"), redirect_stdout(io.StringIO()):
            torch.onnx.export(
                model,
                (pixels,),
                buffer,
                input_names=["pixels"],
                output_names=["logits"],
                dynamic_axes={"pixels": batch, "logits": batch},
                opset_version=_OPSET,
                dynamo=False,
            )
    except (RuntimeError, torch.onnx.OnnxExporterError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"torch cannot export a {_name(model)} to ONNX: {reason}") from None
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return buffer.getvalue()


def _shorten(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give values short names, and nodes none. The exporter's take more room than the nodes."""
    graph, names = model.graph, {"pixels": "pixels", "logits": "logits", "": ""}
    tensors = [*graph.initializer]
    for node in graph.node:
        node.ClearField("name")
        tensors += [attribute.t for attribute in node.attribute if attribute.HasField("t")]
        for values in (node.input, node.output):
            values[:] = [names.setdefault(value, f"v{len(names)}") for value in values]
    for weight in graph.initializer:
        weight.name = names.setdefault(weight.name, f"v{len(names)}")
    for tensor in tensors:
        tensor.ClearField("data_location")  # this file, as the exporter says in vain
    del graph.value_info[:]
    return model


def _compare(graph: bytes, model: nn.Module, pixels: Tensor) -> None:
    """Check the graph on images that it was not traced with, and on another number of them."""
    expected = model(pixels).numpy()
    try:
        found = start_graph(graph, threads=1)(pixels.numpy())
    except Exception:  # ONNX Runtime's, of any kind; or a graph within the graph
        found = np.empty(0)
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-3, atol=1e-3):
        raise UserError(
            f"torch cannot export a {_name(model)} to ONNX: what it computes depends on values or "
            "on the number of images in a way that a graph cannot follow"
        )


def _quantise(model: onnx.ModelProto) -> onnx.ModelProto:
    add_pre_process_metadata(model)  # else it advises, in every export, to optimise the graph first
    with scratch_folder() as folder:
        path = folder / "int8.onnx"
        products = ["MatMul", "Gemm"]
        quantize_dynamic(model, path, per_channel=True, op_types_to_quantize=products)
        return onnx.load(path)


def _name(model: nn.Sequential) -> str:
    return type(model[1]).__name__
