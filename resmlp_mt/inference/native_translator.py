"""Encoder and decoder of a folded translator for compiled code."""

import numpy as np

from resmlp_mt.inference.native_code import find_compute
from resmlp_mt.inference.native_encoder import NativeEncoder
from resmlp_mt.inference.native_step import NativeDecoder


def build_native(
    config: dict,
    weights: dict[str, np.ndarray],
    shared: dict[str, np.ndarray],
    source_dictionary,
    target_dictionary,
    banned: list[int],
    preview: dict[str, np.ndarray] | None = None,
) -> dict:
    """What `FoldedSearch` takes as `native` and `native_encoder`.

    It is empty where there is no compiled code. Older exports describe no encoder, or neither.

    Args:
        config: "decoder" and "encoder", as `describe_decoder` and `describe_encoder` wrote them,
            and "source_positions", N of the encoder.
        weights: As for `FoldedSearch`.
        shared: The weights that the descriptions name.
        source_dictionary, target_dictionary: fairseq's.
        banned: Symbols that no translation has.
        preview: As for `NativeDecoder`.

    Raises:
        ValueError: If something does not fit.
    """
    compute, described = find_compute("step"), config.get("decoder")
    if compute is None or described is None:
        return {}
    layers, channels = len(weights["decoder.matrix"]), weights["decoder.scale"].size
    sizes = len(target_dictionary), channels // layers, layers
    end = target_dictionary.eos()
    compute = compute, find_compute("search")
    decoder = NativeDecoder(described, shared, *sizes, banned, end, *compute, preview)
    if (described := config.get("encoder")) is None:
        return {"native": decoder}
    sizes = len(source_dictionary), config["source_positions"]
    sides = 2 * layers, decoder.heads, decoder.channels // decoder.heads
    compute = find_compute("encode")
    encoder = NativeEncoder(described, shared, weights, *sizes, sides, compute)
    return {"native": decoder, "native_encoder": encoder}
