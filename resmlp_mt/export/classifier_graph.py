"""The ONNX graph of a classifier: folded where its parts have folds, else as torch traces it."""

from torch import nn

from resmlp_mt.export.image_graph import build_classifier, can_fold, describe_classifier
from resmlp_mt.export.traced_graph import trace_classifier
from resmlp_mt.models.folded import SharedWeights


def make_graph(
    model: nn.Module, mean: list, std: list, image_size: int, int8: bool, shared: SharedWeights
) -> tuple[bytes, dict | None]:
    """A graph, and what the compiled code needs in its place, where that can do it.

    Input: pixels, uint8 (B, in_chans, rows, columns). Output: logits (B, K).

    Args:
        model: Maps normalised images to logits.
        mean, std: What the pixels of each channel are normalised with, on a scale of 0 to 1.
        image_size: Side of the images in pixels.
        int8: Keep the weights of products as int8.
        shared: Where the weights of a folded model go.

    Raises:
        UserError: If it has no folds, and torch cannot export it.
    """
    if can_fold(model):
        parts = model, mean, std, int8, shared
        return build_classifier(*parts), describe_classifier(*parts)
    return trace_classifier(model, mean, std, image_size, int8), None
