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
        dtype: type = np.float32,
    ):
        self.beam, self.width, self.end = beam, width, end
        self.found: list[list[Found]] = [[] for _ in range(sentences)]
        self.at_work = np.arange(sentences)  # which sentence a row is
        self.unfinished = np.ones(sentences, bool)
        rows = 1 if width > 2 * beam else beam
        self.tokens = np.full((sentences, rows), end)
        self.scores = np.full((sentences, rows, 1), -np.inf, np.float32)
        self.scores[:, 0] = 0  # the others are alike, and count for nothing
        self.places = np.empty((0, sentences, rows), np.int64)
        self.now = np.empty((layers, 1, channels), np.float32)
        # By place: what a step left there for the mixers, the token that it was told, and the score
        # of the beam up to that.
        self.used = 0
        places = _STEPS * sentences * beam
        self.history = np.empty((places, layers * channels), dtype)
        self.told = np.empty(places, np.int64)
        self.reached = np.empty(places, np.float32)
        self._make_answers()

    def _make_answers(self) -> None:
        """What a step answers: the best continuations, and the scores of ending here."""
        sentences, rows = self.tokens.shape
        best = sentences, min(2, self.width) * self.beam
        self.best_scores = np.empty(best, np.float32)
        self.best_tokens, self.best_places = np.empty(best, np.int64), np.empty(best, np.int64)
        self.ends = np.empty((sentences, rows, 1), np.float32)

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
        new = np.arange(self.used, self.used + self.tokens.size).reshape(1, *self.tokens.shape)
        self.places = np.concatenate([self.places, new])
        new = slice(self.used, self.used + self.tokens.size)
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

    def advance(self, lenpen: float) -> bool:
        """Keep the translations that ended; go on with the best M of the others.

        Returns whether there are more beams than before, in other arrays.
        """
        scores, tokens, parents = self.best_scores, self.best_tokens, self.best_places // self.width
        beam, ended, rows = self.beam, tokens == self.end, np.arange(len(tokens))[:, None]
        if ended.any():
            if len(self.places) > 1:  # a translation has a token
                self._keep(ended[:, :beam], scores, parents, lenpen)
            order = np.argsort(ended, axis=1, kind="stable")
            tokens, scores, parents = tokens[rows, order], scores[rows, order], parents[rows, order]
        self.places = self.places[:, rows, parents[:, :beam]]
        if grown := self.tokens.shape[1] < beam:
            self.tokens, self.scores = tokens[:, :beam].copy(), scores[:, :beam, None].copy()
            self._make_answers()
        else:
            self.tokens[:], self.scores[..., 0] = tokens[:, :beam], scores[:, :beam]
        return grown

    def end_all(self, lenpen: float) -> None:
        """Keep all beams as translations, ended here."""
        ends = self.ends[..., 0]
        order = np.argsort(-ends, axis=1)
        scores = np.take_along_axis(ends, order, axis=1)
        self._keep(np.ones_like(order, bool), scores, order, lenpen)

    def drop_finished(self) -> None:
        """Leave the sentences that have all their translations out of the batch."""
        kept = self.unfinished
        self.tokens, self.scores, self.at_work = (
            self.tokens[kept],
            self.scores[kept],
            self.at_work[kept],
        )
        self.places = self.places[:, kept]
        self.unfinished = kept[kept]
        self._make_answers()

    def _keep(self, ended: np.ndarray, scores: np.ndarray, parents: np.ndarray, lenpen: float):
        steps = len(self.places)
        for row, rank in np.argwhere(ended).tolist():
            found, score = self.found[self.at_work[row]], scores[row, rank].item()
            if len(found) < self.beam and math.isfinite(score):
                places = self.places[1:, row, parents[row, rank]]
                reached = np.array([0, *self.reached[places], score], np.float32)
                found.append(Found(self.told[places], score / steps**lenpen, np.diff(reached)))
                self.unfinished[row] = len(found) < self.beam
