"""The beams of a search: what `FoldedSearch` and the compiled code keep between steps."""

import math
from typing import NamedTuple

import numpy as np

_STEPS = 32  # that there is room for at first


class Found(NamedTuple):
    """A finished translation.

    Attributes:
        tokens: Without the end. (T,).
        score: The sum of its log-probabilities, divided by a power of its length.
        log_p: That of each token and of the end. (T + 1,).
    """

    tokens: np.ndarray
    score: float
    log_p: np.ndarray


class Beams:
    """The beams of a batch: their last tokens, their scores, and the places that they came through.

    Steps read and write the arrays where they lie. At first the beams of a sentence are alike.
    There is one then, if its continuations are enough for all.

    Args:
        sentences: B.
        beam: M.
        width: Continuations of each beam that a step looks at.
        end: The end of a sentence.
        layers, channels: D and C.
        longest: Steps of the search.
        dtype: Of the numbers that a step leaves for later ones.
    """

    def __init__(
        self,
        sentences: int,
        beam: int,
        width: int,
        end: int,
        layers: int,
        channels: int,
        longest: int,
        dtype: type = np.float32,
    ):
        self.beam, self.width, self.end, self.longest = beam, width, end, longest
        self.best = min(2, width) * beam  # continuations of a sentence that a step answers
        self.at_work = np.arange(sentences)  # which sentence a row is
        self.unfinished = np.ones(sentences, bool)
        self.rows = 1 if width > 2 * beam else beam  # of a sentence
        self.steps = 0
        self._tokens = np.full(sentences * beam, end)
        self._scores = np.full(sentences * beam, -np.inf, np.float32)
        self._scores[:: self.rows] = 0  # the others are alike, and count for nothing
        self.all_places = np.empty(longest * sentences * beam, np.int64)
        # By place: what a step left there for the mixers, the token that it was told, and the score
        # of the beam up to that.
        self.used = 0
        places = _STEPS * sentences * beam
        self.history = np.empty((places, layers * channels), dtype)
        self.told = np.empty(places, np.int64)
        self.reached = np.empty(places, np.float32)
        # Translations: how many there are, their lengths with the end, their tokens without it, and
        # the scores up to each of them and to the end.
        self.found = np.zeros(sentences, np.int64)
        self.lengths = np.empty((sentences, beam), np.int64)
        self.found_tokens = np.empty((sentences, beam, longest), np.int64)
        self.found_reached = np.empty((sentences, beam, longest), np.float32)
        self._make_answers()

    def _make_answers(self) -> None:
        """What a step answers: the best continuations, and the scores of ending here."""
        best = len(self.at_work), self.best
        self.best_scores = np.empty(best, np.float32)
        self.best_tokens, self.best_places = np.empty(best, np.int64), np.empty(best, np.int64)
        self._ends = np.empty(len(self.at_work) * self.beam, np.float32)

    def _shape(self, array: np.ndarray) -> np.ndarray:
        sentences = len(self.at_work)
        return array[: sentences * self.rows].reshape(sentences, self.rows)

    @property
    def tokens(self) -> np.ndarray:
        """The last ones. (B, M), or (B, 1) before the first step."""
        return self._shape(self._tokens)

    @property
    def scores(self) -> np.ndarray:
        """Those of the beams so far. Shape as `tokens`."""
        return self._shape(self._scores)

    @property
    def ends(self) -> np.ndarray:
        """Those of ending here, as a step answers them. Shape as `tokens`."""
        return self._shape(self._ends)

    @property
    def places(self) -> np.ndarray:
        """Rows of the history that each beam came through. (t, B, M)."""
        shape = self.steps, len(self.at_work), self.rows
        return self.all_places[: math.prod(shape)].reshape(shape)

    def make_room(self) -> None:
        """Enlarge the history if a step more does not fit."""
        if self.used + self.tokens.size > len(self.told):
            for name in ("history", "told", "reached"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.empty_like(array)]))

    def force(
        self, tokens: list[np.ndarray], log_p: np.ndarray, candidates: np.ndarray | None = None
    ) -> None:
        """Let sentences go on with a given token alone, in their first beam.

        Call it between the two parts of a step, at each position of a prefix from the first on: the
        other beams then count for nothing, as at the start.

        Args:
            tokens: Of each sentence of the search, finished ones too: the token or nothing. (1,) or
                (0,).
            log_p: Log-probabilities of all tokens, (B, M, V), or of candidates, (B, M, K).
            candidates: These. (K,).
        """
        for row, sentence in enumerate(self.at_work):
            for token in tokens[sentence]:
                self.best_scores[row], self.best_tokens[row] = -np.inf, token
                column = token if candidates is None else np.argmax(candidates == token)
                self.best_scores[row, 0] = self.scores[row, 0] + log_p[row, 0, column]
                self.best_places[row] = 0

    def end_all(self) -> None:
        """Let all beams end, in place of their best continuations."""
        order = np.argsort(-self.ends, axis=1)
        self.best_scores[:], self.best_tokens[:] = -np.inf, self.end
        self.best_scores[:, : self.rows] = np.take_along_axis(self.ends, order, axis=1)
        self.best_places[:, : self.rows] = order * self.width

    def select(self, rows: np.ndarray, at_work: np.ndarray) -> None:
        """Go on with some of the beams, in this order. Where sentences are fewer, bind steps anew.

        Args:
            rows: Of the beams at work, (B M,). M of each sentence follow each other.
            at_work: Which sentences these are then. (B,).
        """
        tokens, scores = (array.ravel()[rows] for array in (self.tokens, self.scores))
        places = self.places.reshape(self.steps, -1)[:, rows]
        self.all_places[: places.size] = places.ravel()
        self._tokens[: len(rows)], self._scores[: len(rows)] = tokens, scores
        if len(at_work) < len(self.at_work):
            self.at_work, self.unfinished = at_work, np.ones(len(at_work), bool)
            self._make_answers()

    def drop_finished(self) -> None:
        """Leave the sentences that have all their translations out of the batch."""
        rows = np.flatnonzero(np.repeat(self.unfinished, self.rows))
        self.select(rows, self.at_work[self.unfinished])

    def collect(self, lenpen: float) -> list[list[Found]]:
        """The translations of each sentence, best first; scores by their lengths to this power."""
        found = []
        for sentence, count in enumerate(self.found.tolist()):
            results = [
                self._collect_one(sentence, number, length, lenpen)
                for number, length in enumerate(self.lengths[sentence, :count].tolist())
            ]
            found.append(sorted(results, key=lambda result: -result.score))
        return found

    def _collect_one(self, sentence: int, number: int, length: int, lenpen: float) -> Found:
        reached = self.found_reached[sentence, number, :length]
        log_p = reached.copy()
        log_p[1:] -= reached[:-1]
        tokens = self.found_tokens[sentence, number, : length - 1].copy()
        return Found(tokens, reached[-1].item() / length**lenpen, log_p)
