"""Encoder and decoder of a folded translator in compiled code."""

from collections.abc import Callable
from functools import partial

import numpy as np

from resmlp_mt.engines.compiled_code.code import find_compute
from resmlp_mt.engines.compiled_code.decoder import NativeDecoder
from resmlp_mt.engines.compiled_code.encoder import NativeEncoder
from resmlp_mt.engines.compiled_code.memory import NativeMemory
from resmlp_mt.engines.compiled_code.step import NativeStep
from resmlp_mt.engines.onnx.backend import OnnxBackend
from resmlp_mt.engines.onnx.memory import GraphMemory
from resmlp_mt.engines.search.beams import Beams
from resmlp_mt.engines.search.mixing import MixingRows
from resmlp_mt.engines.search.shortlist import Choice


class NativeBackend:
    """What a `FoldedSearch` computes with where compiled code runs.

    Attributes:
        dtype: Of the numbers that a step leaves for later ones.

    Args:
        decoder: The decoder.
        encoder: Tokens, padded on the right, and where they are no padding, both (B, S), to what
            the decoder attends to.
        rows: Of the decoder's matrices.
        graphs: What fairseq's generator goes its steps with; without them there is no search but
            the plain one.
    """

    def __init__(
        self,
        decoder: NativeDecoder,
        encoder: Callable[[np.ndarray, np.ndarray], NativeMemory],
        rows: MixingRows,
        graphs: OnnxBackend | None = None,
    ):
        self._decoder, self._encoder, self._graphs = decoder, encoder, graphs
        self.rows, self.dtype, self.select = rows, decoder.dtype, decoder.select

    def begin(
        self, tokens: np.ndarray, real: np.ndarray, beams: Beams, choice: Choice | None
    ) -> NativeStep:
        """What runs the steps of a batch. Arguments as for `OnnxBackend.begin`."""
        return NativeStep(self._decoder, self._encoder(tokens, real), beams, choice, self.rows)

    def encode(self, tokens: np.ndarray, real: np.ndarray) -> GraphMemory:
        """As `OnnxBackend.encode`."""
        return self._encoder(tokens, real).to_graph()

    def check_log_p(self) -> None:
        """As `OnnxBackend.check_log_p`."""
        self._graphs.check_log_p()

    def step_log_p(self, *asked) -> list[np.ndarray]:
        """As `OnnxBackend.step_log_p`."""
        return self._graphs.step_log_p(*asked)


def build_native(
    config: dict,
    weights: dict[str, np.ndarray],
    shared: dict[str, np.ndarray],
    rows: MixingRows,
    source_dictionary,
    target_dictionary,
    banned: list[int],
    preview: dict[str, np.ndarray] | None = None,
    graphs: OnnxBackend | None = None,
) -> NativeBackend | None:
    """What a `FoldedSearch` computes with; None where there is no compiled code.

    Older exports describe no decoder, or no encoder: then that of the graphs is taken.

    Args:
        config: "decoder" and "encoder", as `describe_decoder` and `describe_encoder` wrote them,
            and "source_positions", N of the encoder.
        weights: As for `NativeEncoder`.
        shared: The weights that the descriptions name.
        rows, graphs: As for `NativeBackend`.
        source_dictionary, target_dictionary: A `Vocabulary` each, or a `Dictionary` of fairseq.
        banned: Symbols that no translation has.
        preview: As for `NativeDecoder`.

    Raises:
        ValueError: If something does not fit.
    """
    compute, described = find_compute("step"), config.get("decoder")
    if compute is None or described is None:
        return None
    sizes = len(target_dictionary), rows.channels, rows.layers
    end = target_dictionary.eos()
    compute = compute, find_compute("search")
    decoder = NativeDecoder(described, shared, *sizes, banned, end, *compute, preview)
    if (described := config.get("encoder")) is None:
        graphs.start("encoder")  # found broken now rather than later
        return NativeBackend(decoder, partial(_encode, graphs, decoder.sides), rows, graphs)
    sizes = len(source_dictionary), config["source_positions"], decoder.sides
    encoder = NativeEncoder(described, shared, weights, *sizes, find_compute("encode"))
    return NativeBackend(decoder, encoder, rows, graphs)


def _encode(
    graphs: OnnxBackend, sides: tuple[int, int, int], tokens: np.ndarray, real: np.ndarray
) -> NativeMemory:
    return NativeMemory.from_graph(sides, real, graphs.encode(tokens, real).values)
