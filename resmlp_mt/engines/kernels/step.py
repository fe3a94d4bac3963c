"""The steps of a search in compiled code.

Each row is quantized with a scale of its own, so a sentence gets the same scores in any batch.
"""

import ctypes

import numpy as np

from resmlp_mt.engines.kernels.decoder import DecoderKernel, Search, Step
from resmlp_mt.engines.kernels.encoder import KeysAndValues
from resmlp_mt.engines.kernels.library import find_library
from resmlp_mt.engines.search.beams import Beams
from resmlp_mt.engines.search.shortlist import Choice

_BOTH, _STEP, _CHOICE = range(3)  # the parts of a step, as in native/decoder.h
_OF_STEP = "best_scores", "best_tokens", "best_places", "ends", "at_work"
_OF_SEARCH = "unfinished", "found", "lengths", "found_tokens", "found_reached"


class StepKernel:
    """Runs the steps of a batch.

    Args:
        decoder: The decoder.
        memory: What it attends to.
        beams: What the steps read and write.
        choice: What they choose from; None for all symbols.

    Raises:
        ValueError: If the decoder does not fit the encoder.
    """

    def __init__(
        self,
        decoder: DecoderKernel,
        memory: KeysAndValues,
        beams: Beams,
        choice: Choice | None = None,
    ):
        layers, _, heads, width, _ = memory.keys.shape
        if (2 * layers, heads, width) != decoder.sides:
            raise ValueError(f"keys of {memory.keys.shape} for {decoder.layers} layers")
        self._decoder, self._beams, self._memory = decoder, beams, memory
        self.bind(choice)

    @property
    def keys(self) -> np.ndarray:
        """Those of the last layer for the first sentence. (E, S, C / E)."""
        keys, source = self._memory.keys[-1, 0], self._memory.values.shape[3]
        return keys[..., :source].swapaxes(1, 2)

    def bind(self, choice: Choice | None) -> None:
        """Take the beams as they are, from the next step on; forget all other `answer`s."""
        beams, memory, decoder, self._kept = self._beams, self._memory, self._decoder, {}
        step = self._step = Step(*beams.tokens.shape, memory.values.shape[3])
        search = self._search = Search(beams.beam, longest=beams.longest, **decoder.mixing)
        step.all, step.best, step.width = len(memory.lengths), beams.best, beams.width
        step.half_memory = memory.keys.dtype == np.float16
        step.half_history = beams.history.dtype == np.float16
        self._product = choice.output if choice else decoder.output  # which keeps the weights
        step.output = ctypes.pointer(self._product.struct)
        self._point(step, lengths=memory.lengths, keys=memory.keys, memory=memory.values)
        if choice:
            barred = np.ascontiguousarray(choice.barred)
            self._point(step, candidates=choice.candidates, barred=barred)
        self._point(step, **{name: getattr(beams, name) for name in _OF_STEP})
        self._point(search, **{name: getattr(beams, name) for name in _OF_SEARCH})
        for structure in (step, search):
            self._point(structure, tokens=beams.tokens, scores=beams.scores)
        parents, moved = np.empty((2, beams.beam), np.int64)
        self._point(search, places=beams.all_places, parents=parents, moved=moved)
        if search.matrix:
            row = np.empty((beams.longest, decoder.layers * decoder.channels), np.float32)
            self._point(search, row=row)
        self._call = [ctypes.byref(part) for part in (decoder.struct, step, search)]
        step.beam = beams.beam  # as many as there will be
        self._point(step, room=np.empty(find_library().count_room(*self._call[:2]), np.uint8))
        step.beam = beams.rows

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
        self._search.until, self._search.enough = until, enough
        return self._compute(_BOTH, position)

    def run(self, position: int) -> None:
        """Find the best continuations at a position. All before it were run."""
        self._compute(_STEP, position)
        self._beams.steps = position + 1

    def advance(self, position: int) -> None:
        """Keep the translations that ended, and go on with the best of the others, after `run`."""
        self._compute(_CHOICE, position)

    def _compute(self, part: int, position: int) -> int:
        beams, search, step = self._beams, self._search, self._step
        if not 0 <= position < min(search.positions, beams.longest):
            raise ValueError(f"position {position} of {min(search.positions, beams.longest)}")
        beams.make_room()
        search.part, search.used, search.capacity = part, beams.used, len(beams.told)
        self._point(step, history=beams.history)
        self._point(search, told=beams.told, reached=beams.reached)
        step.past = position
        self._decoder.compute(*self._call)
        beams.used, beams.rows, beams.steps = search.used, step.beam, step.past
        return step.past

    def answer(self, **arrays: np.ndarray) -> None:
        """Write outputs into arrays, from the next step on.

        Args:
            arrays: "query", (B, M, C), what the last layer's attention asks with; "log_p",
                (B, M, K), which goes with "forced", (B,) of bool: for which sentences they are
                exact where there is a preview.
        """
        self._point(self._step, **arrays)

    def _point(self, structure: ctypes.Structure, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            self._kept[type(structure), name] = array
            setattr(structure, name, array.ctypes.data)
