"""The steps of a search in compiled code, and the beams between them.

Each row is quantized with a scale of its own, so a sentence gets the same scores in any batch.
Beams share their past: the mixers' numbers of a position stay where they were computed, and a beam
is the list of places that it came through. So nothing is reordered.

Shapes as in `nn/__init__.py`. Besides, M is beams of a sentence, and K symbols to choose from.
"""

import ctypes
import math
from typing import NamedTuple

import numpy as np

from resmlp_mt.engines.kernels.decoder import DecoderKernel
from resmlp_mt.engines.kernels.encoder import KeysAndValues
from resmlp_mt.engines.kernels.library import find_library
from resmlp_mt.engines.kernels.structures import STRUCTURES
from resmlp_mt.engines.search.shortlist import Choice

_BOTH, _STEP, _CHOICE = range(3)  # the parts of a step, as in native/decoder.h
_ROOM = 32  # steps that there is room for at first
_WORTH_DROPPING = 0.2  # share of finished sentences from which on it pays to drop them


class Found(NamedTuple):
    """A finished translation.

    Attributes:
        tokens: Without the end. (T,).
        score: The sum of its log-probabilities, divided by a power of its length.
        log_p: Log-probabilities of the tokens and of the end. (T + 1,).
    """

    tokens: np.ndarray
    score: float
    log_p: np.ndarray


class Steps:
    """Runs the steps of a batch. Compiled code reads and writes the arrays where they lie.

    At first the beams of a sentence are alike. Then only one is computed, if its continuations are
    enough for all.

    Attributes:
        steps: How many were run.
        at_work: Which sentence of the memory each of the B is. (B,).
        unfinished: Which of the B want more translations. (B,).
        best_scores, best_tokens, best_places: The best continuations, as a step answers them; a
            place is a beam times `width`. (B, up to 2 M).

    Args:
        decoder: The decoder.
        memory: The keys and values that it attends to.
        beam: M.
        width: Continuations of each beam that a step looks at.
        longest: Steps of the search.
        choice: The symbols that beams choose from; None for all.
        at_work: As the attribute. Default: all sentences of the memory.

    Raises:
        ValueError: If the decoder does not fit the encoder.
    """

    def __init__(
        self,
        decoder: DecoderKernel,
        memory: KeysAndValues,
        beam: int,
        width: int,
        longest: int,
        choice: Choice | None = None,
        at_work: np.ndarray | None = None,
    ):
        layers, _, heads, size, _ = memory.keys.shape
        if (2 * layers, heads, size) != decoder.sides:
            raise ValueError(f"keys of {memory.keys.shape} for {decoder.layers} layers")
        self.decoder, self.memory, self.longest = decoder, memory, longest
        self.beam, self.width, self.choice = beam, width, choice
        self.rows = 1 if width > 2 * beam else beam  # of a sentence
        self.at_work = np.arange(len(memory.lengths)) if at_work is None else at_work
        self.steps = self.used = 0
        sentences = len(self.at_work)
        all_rows = sentences * beam
        self.unfinished = np.ones(sentences, bool)
        self._tokens = np.full(all_rows, decoder.struct.end)
        self._scores = np.full(all_rows, -np.inf, np.float32)
        self._scores[:: self.rows] = 0  # the others are alike, and count for nothing
        self._all_places = np.empty(longest * all_rows, np.int64)
        # By place: what a step left there for the mixers, the token that it was told, and the score
        # of the beam up to that.
        self.history = np.empty((_ROOM * all_rows, layers * decoder.channels), decoder.dtype)
        self.told = np.empty(_ROOM * all_rows, np.int64)
        self.reached = np.empty(_ROOM * all_rows, np.float32)
        # Translations: how many there are, their lengths with the end, their tokens without it, and
        # the scores up to each of them and to the end.
        self._found = {
            "found": np.zeros(sentences, np.int64),
            "lengths": np.empty((sentences, beam), np.int64),
            "found_tokens": np.empty((sentences, beam, longest), np.int64),
            "found_reached": np.empty((sentences, beam, longest), np.float32),
        }
        self.bind()

    def _shape(self, array: np.ndarray) -> np.ndarray:
        sentences = len(self.at_work)
        return array[: sentences * self.rows].reshape(sentences, self.rows)

    @property
    def tokens(self) -> np.ndarray:
        """The last token of each beam. (B, M), or (B, 1) before the first step."""
        return self._shape(self._tokens)

    @property
    def scores(self) -> np.ndarray:
        """The scores of the beams so far. Shape as `tokens`."""
        return self._shape(self._scores)

    @property
    def keys(self) -> np.ndarray:
        """The keys of the last layer for the first sentence. (E, S, C / E)."""
        keys, source = self.memory.keys[-1, 0], self.memory.values.shape[3]
        return keys[..., :source].swapaxes(1, 2)

    def bind(self) -> None:
        """Take the beams as they are, from the next step on; forget all `answer`s."""
        choice, memory, decoder = self.choice, self.memory, self.decoder
        sentences = len(self.at_work)
        best = sentences, min(2, self.width) * self.beam
        self.best_scores, self._ends = np.empty(best, np.float32), np.empty_like(self._scores)
        self.best_tokens, self.best_places = np.empty((2, *best), np.int64)
        self._kept: dict = {}
        # There is room for as many beams as there will be.
        step = self._step = STRUCTURES["Step"](sentences, self.beam, memory.values.shape[3])
        search = self._search = STRUCTURES["Search"](
            self.beam, longest=self.longest, **decoder.mixing
        )
        step.all, step.best, step.width = len(memory.lengths), best[1], self.width
        step.half_memory = memory.keys.dtype == np.float16
        step.half_history = self.history.dtype == np.float16
        self._product = choice.output if choice else decoder.output  # which keeps the weights
        step.output = ctypes.addressof(self._product.struct)
        if choice:
            barred = np.ascontiguousarray(choice.barred)
            self._point(step, candidates=choice.candidates, barred=barred)
        self._point(step, lengths=memory.lengths, keys=memory.keys, memory=memory.values)
        self._point(step, best_scores=self.best_scores, best_tokens=self.best_tokens)
        self._point(step, best_places=self.best_places, ends=self._ends, at_work=self.at_work)
        self._point(search, places=self._all_places, unfinished=self.unfinished, **self._found)
        for structure in (step, search):
            self._point(structure, tokens=self._tokens, scores=self._scores)
        parents, moved = np.empty((2, self.beam), np.int64)
        self._point(search, parents=parents, moved=moved)
        if search.matrix:
            row = np.empty((self.longest, decoder.layers * decoder.channels), np.float32)
            self._point(search, row=row)
        self._call = [ctypes.byref(part) for part in (decoder.struct, step, search)]
        self.answer(room=np.empty(find_library().count_room(*self._call[:2]), np.uint8))
        step.beam = self.rows

    @property
    def _enough(self) -> int:
        """Unfinished sentences at which it pays to drop the others."""
        return int((1 - _WORTH_DROPPING) * len(self.unfinished))

    def search(self, until: int) -> None:
        """Run steps and go on from them, until so few are unfinished that others can be dropped.

        It stops before the position `until`, too, and where the history is full.
        """
        self._search.until, self._search.enough = until, self._enough
        self._compute(_BOTH, self.steps)
        self._drop_finished()

    def run(self) -> None:
        """Find the best continuations at the next position."""
        position = self.steps
        self._compute(_STEP, position)
        self.steps = position + 1

    def advance(self) -> None:
        """Keep the translations that ended, and go on with the best of the others, after `run`."""
        self._compute(_CHOICE, self.steps - 1)
        self._drop_finished()

    def _compute(self, part: int, position: int) -> None:
        search, step = self._search, self._step
        if not 0 <= position < min(search.positions, self.longest):
            raise ValueError(f"position {position} of {min(search.positions, self.longest)}")
        if self.used + self.tokens.size > len(self.told):  # a step more does not fit
            for name in ("history", "told", "reached"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.empty_like(array)]))
        search.part, search.used, search.capacity = part, self.used, len(self.told)
        self._point(step, history=self.history)
        self._point(search, told=self.told, reached=self.reached)
        step.past = position
        self.decoder.compute(*self._call)
        self.used, self.rows, self.steps = search.used, step.beam, step.past

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

    def force(self, tokens: list[np.ndarray], log_p: np.ndarray) -> None:
        """Let sentences go on with a given token alone, in their first beam.

        Call it between the two parts of a step, at each position of a prefix from the first on: the
        other beams then count for nothing, as at the start.

        Args:
            tokens: Of each sentence of the search, finished ones too: the token or nothing. (1,) or
                (0,).
            log_p: Log-probabilities of all tokens, (B, M, V), or of those of the choice, (B, M, K).
        """
        choice = self.choice
        for row, sentence in enumerate(self.at_work):
            for token in tokens[sentence]:
                self.best_scores[row], self.best_tokens[row] = -np.inf, token
                column = np.argmax(choice.candidates == token) if choice else token
                self.best_scores[row, 0] = self.scores[row, 0] + log_p[row, 0, column]
                self.best_places[row] = 0

    def end_all(self) -> None:
        """Let all beams end, in place of their best continuations."""
        ends = self._shape(self._ends)
        order = np.argsort(-ends, axis=1)
        self.best_scores[:], self.best_tokens[:] = -np.inf, self.decoder.struct.end
        self.best_scores[:, : self.rows] = np.take_along_axis(ends, order, axis=1)
        self.best_places[:, : self.rows] = order * self.width

    def select(self, rows: np.ndarray, at_work: np.ndarray) -> None:
        """Go on with some of the beams, in this order. Where sentences are fewer, `bind`s anew.

        Args:
            rows: Of the beams at work, (B M,). M of each sentence follow each other.
            at_work: As the attribute, of the sentences that stay. (B,).
        """
        shape = self.steps, self.tokens.size
        places = self._all_places[: math.prod(shape)].reshape(shape)[:, rows]
        self._all_places[: places.size] = places.ravel()
        for array in (self._tokens, self._scores):
            array[: len(rows)] = array[rows]
        if len(at_work) < len(self.at_work):
            self.at_work, self.unfinished = at_work, np.ones(len(at_work), bool)
            self.bind()

    def _drop_finished(self) -> None:
        """Leave the sentences that have all their translations out of the batch, if it pays."""
        if 0 < np.count_nonzero(self.unfinished) <= self._enough:
            self.choice = self.choice and self.choice.keep(self.unfinished)
            rows = np.flatnonzero(np.repeat(self.unfinished, self.rows))
            self.select(rows, self.at_work[self.unfinished])

    def collect(self, lenpen: float) -> list[list[Found]]:
        """The translations of each sentence, best first; scores by their lengths to this power."""
        counts, lengths, tokens, reached = self._found.values()
        found = []
        for sentence, count in enumerate(counts.tolist()):
            results = []
            for number, length in enumerate(lengths[sentence, :count].tolist()):
                sums = reached[sentence, number, :length]
                log_p = sums.copy()
                log_p[1:] -= sums[:-1]
                said = tokens[sentence, number, : length - 1].copy()
                results.append(Found(said, sums[-1].item() / length**lenpen, log_p))
            found.append(sorted(results, key=lambda result: -result.score))
        return found
