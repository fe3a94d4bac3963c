"""The graphs of a folded translator, which ONNX Runtime runs. Shapes as in `translation_graphs.py`.

It is imported with the first graph that starts.
"""

from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from resmlp_mt.engines.onnx.memory import GraphMemory
from resmlp_mt.engines.search.beams import Beams
from resmlp_mt.engines.search.mixing import MixingMatrices, MixingRows
from resmlp_mt.engines.search.shortlist import Choice
from resmlp_mt.extras import import_with_onnx

if TYPE_CHECKING:  # compiled code does without it
    import onnxruntime

    from resmlp_mt.engines.onnx.step import OnnxStep


def _import_step():
    return import_with_onnx("resmlp_mt.engines.onnx.step")


class OnnxBackend:
    """What a `FoldedSearch` computes with where there is no compiled code.

    Attributes:
        dtype: Of the numbers that a step leaves for later ones.

    Args:
        graphs: The "encoder" of `build_encoder` and the "step" of `build_step`; for a shortlist the
            "selecting_step" too, which selects, and "select" of `build_selection`.
        weights: "encoder.matrix", as for `MixingMatrices`; where the model has them "encoder.bias",
            (D, H, N), and "encoder.positions", (N, C).
        shared: The weights that the graphs have beside them, by name.
        rows: Of the decoder's matrices.
    """

    dtype = np.float32

    def __init__(
        self,
        graphs: dict[str, bytes],
        weights: dict[str, np.ndarray],
        shared: dict[str, np.ndarray],
        rows: MixingRows,
    ):
        self._graphs, self._sessions, self._starting = dict(graphs), {}, Lock()
        self._weights, self._shared, self.rows = weights, shared, rows
        self._source_matrices = MixingMatrices(weights["encoder.matrix"])

    def start(self, name: str) -> "onnxruntime.InferenceSession":
        """What runs a graph. It starts where it is first needed.

        Raises:
            UserError: If ONNX Runtime is not installed.
            ValueError: As of `start` in `step.py`.
        """
        with self._starting:
            if name in self._graphs:
                # Batches side by side beat threads within a batch.
                started = _import_step().start(self._graphs[name], 1, self._shared)
                self._sessions[name] = started
                del self._graphs[name]  # whose weights it has
        return self._sessions[name]

    def start_search(self) -> Self:
        """Start all that a plain search needs: found broken now rather than later."""
        # The step over all tokens is seldom needed beside a shortlist.
        steps = ("select", "selecting_step") if "select" in self._graphs else ("step",)
        for name in ("encoder", *steps):
            self.start(name)
        return self

    def select(self, candidates: np.ndarray) -> dict[str, np.ndarray]:
        """Some rows of the output layer, (K,), by the name of the step's input."""
        session = self.start("select")
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, {"candidates": candidates}), strict=True))

    def encode(self, tokens: np.ndarray, real: np.ndarray) -> GraphMemory:
        """The keys and values of the sources.

        Args:
            tokens: Padded on the right. (B, S).
            real: Where they are no padding. (B, S).
        """
        length = tokens.shape[1]
        feed = {"tokens": tokens, "mask": real[..., None].astype(np.float32)}
        for layer, matrix in enumerate(self._source_matrices.squares(length)):
            feed[f"matrix_{layer}"] = matrix
        for layer, bias in enumerate(self._weights.get("encoder.bias", ())):
            feed[f"bias_{layer}"] = bias[:, :length, None]
        if "encoder.positions" in self._weights:
            feed["positions"] = self._weights["encoder.positions"][:length]
        return GraphMemory.hide(self.start("encoder").run(["memory"], feed)[0], real)

    def begin(
        self, tokens: np.ndarray, real: np.ndarray, beams: Beams, choice: Choice | None
    ) -> "OnnxStep":
        """What runs the steps of a batch. Arguments as for `encode` and `OnnxStep`."""
        session = self.start("selecting_step" if choice else "step")
        return _import_step().OnnxStep(session, self.encode(tokens, real), beams, choice, self.rows)

    def check_log_p(self) -> None:
        """Check that `step_log_p` can be asked.

        Raises:
            UserError: If the export is too old for that.
        """
        _import_step().check_log_p(self.start("step"))

    def step_log_p(
        self, tokens: np.ndarray, history: np.ndarray, places: np.ndarray, memory: GraphMemory
    ) -> list[np.ndarray]:
        """Log-probabilities of the next tokens, (B, M, V), and what the step leaves: (B, M, D C).

        Args:
            tokens: The last ones. (B, M).
            history: What earlier steps left. (n, D C).
            places: The rows of it that each beam comes from. (t, B, M).
            memory: What `encode` returned.
        """
        feed = {"tokens": tokens, "history": history, "ancestors": places}
        feed |= memory.feed(tokens.shape[1]) | self.rows.feed(len(places))
        # Inputs of the choice among candidates, which is not made here.
        feed |= {"scores": np.zeros((*tokens.shape, 1), np.float32)}
        feed |= {"width": np.array([1]), "best": np.array([1])}
        return _import_step().compute(self.start("step"), ["log_p", "values"], feed)
