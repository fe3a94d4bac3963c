"""The step of a search as a graph that ONNX Runtime runs. Shapes as in `translation_graphs.py`."""

import numpy as np
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

from resmlp_mt.engines.onnx.graph_file import find_shared
from resmlp_mt.engines.onnx.memory import GraphMemory
from resmlp_mt.engines.search.beams import Beams
from resmlp_mt.engines.search.mixing import MixingRows
from resmlp_mt.engines.search.shortlist import Choice
from resmlp_mt.errors import UserError

_ASKED_ALONE = onnxruntime.RunOptions()
_ASKED_ALONE.only_execute_path_to_fetches = True


class OnnxStep:
    """Runs the steps of a batch.

    Args:
        session: Of the graph of `build_step`, of the one that selects where there is a `choice`.
        memory: What `OnnxBackend.encode` returned.
        beams: What the step reads and writes.
        choice: What it chooses from; None for all tokens.
        rows: Of the decoder's matrices.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        memory: GraphMemory,
        beams: Beams,
        choice: Choice | None,
        rows: MixingRows,
    ):
        self._session, self._memory, self._beams, self._rows = session, memory, beams, rows
        self.bind(choice)

    @property
    def keys(self) -> np.ndarray:
        """Those of the last layer for the first sentence. (E, S, C / E)."""
        return self._memory.values[-2, 0]

    def bind(self, choice: Choice | None) -> None:
        """Take the beams as they are, from the next run on; forget all other `answer`s."""
        self._feed, beams = self._session.io_binding(), self._beams
        self._kept, self._choice = {}, choice
        if choice:
            self._give(candidates=choice.candidates, barred=choice.barred, **choice.output)
        self._give(**self._memory.keep(beams.at_work).feed(beams.tokens.shape[1]))
        self._give(width=np.array([beams.width]), best=np.array([beams.best_tokens.shape[1]]))
        self._give(tokens=beams.tokens, scores=beams.scores, history=beams.history)
        for name in ("best_scores", "best_tokens", "best_places", "ends"):
            self.answer(name, getattr(beams, name))

    def run(self, position: int) -> None:
        """Find the best continuations at a position. All before it were run."""
        beams = self._beams
        self._give(**self._rows.feed(position), ancestors=beams.places)
        if beams.make_room():
            self._give(history=beams.history)
        self.answer("values", beams.remember())
        try:
            self._session.run_with_iobinding(self._feed)
        except RuntimeError as error:  # as ONNX Runtime raises here alone
            raise RuntimeException(str(error)) from error

    def search(self, position: int, until: int, enough: int) -> int:
        """Run a step and go on from it; returns the next position. Arguments as for `NativeStep`.

        Each call is one step, so `until` and `enough` change nothing.
        """
        self.run(position)
        if self._beams.advance():
            self.bind(self._choice)
        return position + 1

    def _give(self, **inputs: np.ndarray) -> None:
        for name, array in inputs.items():
            array = np.ascontiguousarray(array)
            self._feed.bind_ortvalue_input(name, self._keep(name, array))

    def _keep(self, name: str, array: np.ndarray) -> onnxruntime.OrtValue:
        """An array as a value of ONNX Runtime's, which reads and writes the array's memory.

        Before 1.30 a binding keeps neither alive.
        """
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self._kept[name] = value, array
        return value

    def answer_log_p(self, into: np.ndarray, forced: np.ndarray) -> None:
        """Write log-probabilities into (B, M, K), from the next run on.

        forced: Of which sentences they must be exact, here those of all. (B,) of bool.

        Raises:
            UserError: If the export is too old for that.
        """
        check_log_p(self._session)
        self.answer("log_p", into)

    def answer(self, name: str, into: np.ndarray) -> None:
        """Write an output of the graph into an array, from the next run on."""
        self._feed.bind_ortvalue_output(name, self._keep(name, into))


def check_log_p(session: onnxruntime.InferenceSession) -> None:
    """Check that a step answers log-probabilities.

    Raises:
        UserError: If the export is too old for that.
    """
    if "log_p" not in [output.name for output in session.get_outputs()]:
        raise UserError(
            "this export only does plain beam search: export the model again to sample, to "
            "force prefixes, constraints or a glossary, to bar repeats, or to join it with "
            "others"
        )


def compute(
    session: onnxruntime.InferenceSession, names: list[str], feed: dict[str, np.ndarray]
) -> list[np.ndarray]:
    """Outputs of a graph, by name, and nothing else: a step would sort the candidates too."""
    return session.run(names, feed, _ASKED_ALONE)


def start(
    graph: bytes, threads: int, shared: dict[str, np.ndarray] | None = None
) -> onnxruntime.InferenceSession:
    """Make a graph ready to run on the CPU.

    Args:
        graph: As `read_graph` returned it.
        threads: Of its own.
        shared: Where weights are that are not in the graph, by name.

    Raises:
        ValueError: If a weight is missing. ONNX Runtime has errors of its own, for `explain`.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    names = find_shared(graph)
    if missing := set(names) - set(shared or ()):
        raise ValueError(f"no weight {min(missing):.40}")
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(shared[name]) for name in names]
    if names:
        options.add_external_initializers(names, values)
    # The sum and the norm in one node take three times as long as in two.
    session = onnxruntime.InferenceSession(
        graph, options, ["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )
    session.weights = [(shared[name], value) for name, value in zip(names, values, strict=True)]
    return session  # which may read them where they are, and keeps none itself
