"""The hypotheses of a beam search: what `FoldedSearch` keeps between its steps."""

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

    A step reads and writes the arrays where they lie. At first the beams of a sentence are alike.
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
        sentences = len(self.at_work)
        best = sentences, min(2, self.width) * self.beam
        self.best_scores = np.empty(best, np.float32)
        self.best_tokens, self.best_places = np.empty(best, np.int64), np.empty(best, np.int64)
        self._ends = np.empty(sentences * self.beam, np.float32)

    def _shape(self, array: np.ndarray, *more: int) -> np.ndarray:
        sentences = len(self.at_work)
        return array[: sentences * self.rows].reshape(sentences, self.rows, *more)

    @property
    def tokens(self) -> np.ndarray:
        """The last ones. (B, M), or (B, 1) before the first step."""
        return self._shape(self._tokens)

    @property
    def scores(self) -> np.ndarray:
        """Those of the beams so far. (B, M, 1), or (B, 1, 1) before the first step."""
        return self._shape(self._scores, 1)

    @property
    def ends(self) -> np.ndarray:
        """Those of ending here, as a step answers them. Shape as `scores`."""
        return self._shape(self._ends, 1)

    @property
    def places(self) -> np.ndarray:
        """Rows of the history that each beam came through. (t, B, M)."""
        shape = self.steps, len(self.at_work), self.rows
        return self.all_places[: math.prod(shape)].reshape(shape)

    @places.setter
    def places(self, places: np.ndarray) -> None:
        self.steps = len(places)
        self.all_places[: places.size] = places.ravel()

    def make_room(self) -> bool:
        """Enlarge the history if a step more does not fit; returns whether it has moved."""
        full = self.used + self.tokens.size > len(self.told)
        if full:
            self.history = np.concatenate([self.history, np.empty_like(self.history)])
            self.told = np.concatenate([self.told, np.empty_like(self.told)])
            self.reached = np.concatenate([self.reached, np.empty_like(self.reached)])
        return full

    def remember(self) -> np.ndarray:
        """Add places for the last tokens; returns the part of the history to fill. (B, M, D C)."""
        new = slice(self.used, self.used + self.tokens.size)
        self.steps += 1
        self.places[-1] = np.arange(new.start, new.stop).reshape(self.tokens.shape)
        self.told[new], self.reached[new] = self.tokens.ravel(), self.scores.ravel()
        self.used = new.stop
        return self.history[new].reshape(*self.tokens.shape, -1)

    def force(
        self, tokens: list[np.ndarray], log_p: np.ndarray, candidates: np.ndarray | None = None
    ) -> None:
        """Let sentences go on with a given token alone, in their first beam.

        Call it before `advance`, at each position of a prefix from the first on: the other beams
        then count for nothing, as at the start.

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
                self.best_scores[row, 0] = self.scores[row, 0, 0] + log_p[row, 0, column]
                self.best_places[row] = 0

    def advance(self) -> bool:
        """Keep the translations that ended; go on with the best M of the others.

        Returns whether there are more beams than before.
        """
        scores, tokens, parents = self.best_scores, self.best_tokens, self.best_places // self.width
        beam, ended, rows = self.beam, tokens == self.end, np.arange(len(tokens))[:, None]
        if ended.any():
            if self.steps > 1:  # a translation has a token
                self._keep(ended[:, :beam], scores, parents)
            # What ended comes last. Where too few go on it fills up, and counts for nothing.
            scores = np.where(ended, np.float32(-np.inf), scores)
            order = np.argsort(ended, axis=1, kind="stable")
            tokens, scores, parents = tokens[rows, order], scores[rows, order], parents[rows, order]
        places = self.places[:, rows, parents[:, :beam]]
        grown, self.rows = self.rows < beam, beam
        self.places = places
        self.tokens[:], self.scores[..., 0] = tokens[:, :beam], scores[:, :beam]
        return grown

    def end_all(self) -> None:
        """Keep all beams as translations, ended here."""
        ends = self.ends[..., 0]
        order = np.argsort(-ends, axis=1)
        scores = np.take_along_axis(ends, order, axis=1)
        self._keep(np.ones_like(order, bool), scores, order)

    def drop_finished(self) -> None:
        """Leave the sentences that have all their translations out of the batch."""
        kept = self.unfinished
        tokens, scores, places = self.tokens[kept], self.scores[kept], self.places[:, kept]
        self.at_work, self.unfinished = self.at_work[kept], kept[kept]
        self.tokens[:], self.scores[:], self.places = tokens, scores, places
        self._make_answers()

    def _keep(self, ended: np.ndarray, scores: np.ndarray, parents: np.ndarray) -> None:
        for row, rank in np.argwhere(ended).tolist():
            sentence, score = self.at_work[row], scores[row, rank]
            number = self.found[sentence]
            if number < self.beam and np.isfinite(score):
                places = self.places[1:, row, parents[row, rank]]
                reached = self.found_reached[sentence, number]
                self.found_tokens[sentence, number, : len(places)] = self.told[places]
                reached[: len(places)], reached[len(places)] = self.reached[places], score
                self.lengths[sentence, number] = self.steps
                self.found[sentence] += 1
                self.unfinished[row] = number + 1 < self.beam

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
