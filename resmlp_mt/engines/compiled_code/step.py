"""The steps of a search in compiled code of our own, `resmlp_mt/native`, where that was built.

A step computes what the graph of `build_step` computes, without ONNX Runtime. Each row is
quantized with a scale of its own, so a sentence gets the same scores in any batch.
"""

import ctypes

import numpy as np

from resmlp_mt.engines.compiled_code.code import find_library
from resmlp_mt.engines.compiled_code.decoder import NativeDecoder, Search, Step
from resmlp_mt.engines.compiled_code.memory import NativeMemory
from resmlp_mt.engines.search.beams import Beams
from resmlp_mt.engines.search.mixing import MixingRows
from resmlp_mt.engines.search.shortlist import Choice


class NativeStep:
    """Runs the steps of a batch, as `OnnxStep` does.

    Args:
        decoder: The decoder.
        memory: What it attends to.
        beams, choice, rows: As for `OnnxStep`.

    Raises:
        ValueError: If the decoder does not fit the encoder.
    """

    def __init__(
        self,
        decoder: NativeDecoder,
        memory: NativeMemory,
        beams: Beams,
        choice: Choice | None,
        rows: MixingRows,
    ):
        self._decoder, self._beams, self._rows = decoder, beams, rows
        layers, _, heads, width, _ = memory.keys.shape
        if (layers, heads, width) != (decoder.layers, decoder.heads, decoder.channels // heads):
            raise ValueError(f"keys of {memory.keys.shape} for {decoder.layers} layers")
        self._memory = memory
        self.bind(choice)

    @property
    def keys(self) -> np.ndarray:
        """Those of the last layer for the first sentence. (E, S, C / E)."""
        keys, source = self._memory.keys[-1, 0], self._memory.values.shape[3]
        return keys[..., :source].swapaxes(1, 2)

    def bind(self, choice: Choice | None) -> None:
        """Take the beams as they are, from the next run on; forget all other `answer`s."""
        beams, memory = self._beams, self._memory
        step = self._step = Step(*beams.tokens.shape, memory.values.shape[3])
        self._kept, step.all = {}, len(memory.lengths)
        step.half_memory = memory.keys.dtype == np.float16
        step.half_history = beams.history.dtype == np.float16
        self._point("lengths", memory.lengths)
        self._point("keys", memory.keys)
        self._point("memory", memory.values)
        product = choice.output["product"] if choice else self._decoder.output
        self._product = product  # its structure alone does not keep the weights
        if choice:
            self._point("candidates", choice.candidates)
            self._point("barred", np.ascontiguousarray(choice.barred))
        step.output = ctypes.pointer(product.struct)
        step.best, step.width = beams.best_tokens.shape[1], beams.width
        self._point("at_work", beams.at_work)
        for name in ("tokens", "scores", "best_scores", "best_tokens", "best_places", "ends"):
            self.answer(name, getattr(beams, name))
        self._call = ctypes.byref(self._decoder.struct), ctypes.byref(step)
        step.beam = beams.beam  # as many as there will be
        self._point("room", np.empty(find_library().count_room(*self._call), np.uint8))
        step.beam = beams.rows
        self._bind_search()

    def _bind_search(self) -> None:
        beams, rows = self._beams, self._rows
        search = self._search = Search(beams.beam, longest=beams.longest)
        search.positions, search.heads = rows.positions, rows.matrices.shape[1]
        arrays = {
            "tokens": beams.tokens,
            "scores": beams.scores,
            "places": beams.all_places,
            "unfinished": beams.unfinished,
            "parents": np.empty(beams.beam, np.int64),
            "moved": np.empty(beams.beam, np.int64),
            "scale": rows.scale,
            "offsets": rows.tables.get("offset"),
            "embeddings": rows.tables.get("position"),
        }
        names = "found", "lengths", "found_tokens", "found_reached"
        arrays |= {name: getattr(beams, name) for name in names}
        if rows.last is None:
            arrays |= {"matrix": rows.matrices, "row": rows.make_room(beams.longest)}
        else:
            arrays["last"] = rows.last
        for name, array in arrays.items():
            if array is not None:
                self._kept[f"search {name}"] = array
                setattr(search, name, array.ctypes.data)

    def search(self, position: int, until: int, enough: int) -> int:
        """Run steps and go on from them, as long as nothing else is to do.

        Args:
            position: The first one. All before it were run.
            until: The one to stop before.
            enough: It also stops once no more sentences than this are unfinished, or where the
                history is full.

        Returns:
            The next position.
        """
        beams, search, step = self._beams, self._search, self._step
        beams.make_room()
        search.until, search.enough = until, enough
        search.used, search.capacity = beams.used, len(beams.told)
        for to, name in ((step, "history"), (search, "told"), (search, "reached")):
            setattr(to, name, getattr(beams, name).ctypes.data)
        step.past = position
        self._decoder.search(*self._call, ctypes.byref(search))
        beams.used, beams.rows, beams.steps = search.used, step.beam, step.past
        return step.past

    def run(self, position: int) -> None:
        """Find the best continuations at a position. All before it were run."""
        beams, step = self._beams, self._step
        step.past = position
        self._point("row", np.ascontiguousarray(self._rows[position]))
        for name, added in self._rows.added(position).items():
            self._point(name, added)
        self._point("ancestors", np.ascontiguousarray(beams.places))
        beams.make_room()
        self._point("history", beams.history)
        self._point("values", beams.remember())
        self._decoder.compute(*self._call)

    def _point(self, name: str, array: np.ndarray) -> None:
        self._kept[name] = array
        setattr(self._step, name, array.ctypes.data)

    def answer_log_p(self, into: np.ndarray, forced: np.ndarray) -> None:
        """Write log-probabilities into (B, M, K), from the next run on.

        forced: Of which sentences they are exact, where there is a preview. (B,) of bool.
        """
        self.answer("log_p", into)
        self._point("forced", forced)

    def answer(self, name: str, into: np.ndarray) -> None:
        """Write an output into an array, from the next run on."""
        self._point(name, into)
