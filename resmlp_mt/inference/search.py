"""Beam search with ONNX Runtime over the graphs of `translation_graphs.py`.

It finds what fairseq's SequenceGenerator finds. Beams share their past: what a position leaves for
the mixers is kept where it was computed, and a beam is the list of places that it came through. So
nothing is reordered, and dropping a sentence costs no more than its keys and values.

Shapes as in `translation_graphs.py`.
"""

import math

import numpy as np
import onnxruntime

from resmlp_mt.inference.options import SearchOptions

_FAR_BELOW = np.float32(-1e9)
# Share of finished sentences from which on it pays to drop them.
_WORTH_DROPPING = 0.2


class MixingMatrices:
    """The matrices of the encoder's mixers, by length.

    Args:
        matrices: A of every layer, (L, H, N, N); or, of Toeplitz matrices, their weights from the
            distance 1 - N to N - 1, (L, H, 2 N - 1).
    """

    def __init__(self, matrices: np.ndarray):
        if matrices.ndim == 3:
            positions = (matrices.shape[2] + 1) // 2
            windows = np.lib.stride_tricks.sliding_window_view(matrices, positions, axis=2)
            matrices = windows[..., ::-1]  # a view: row i, column j is w[N - 1 + i - j]
        self.matrices = matrices

    def squares(self, length: int) -> list[np.ndarray]:
        """A[:length, :length] of every layer. L of (H, length, length)."""
        return [np.ascontiguousarray(layer[:, :length, :length]) for layer in self.matrices]


class MixingRows:
    """The rows of the decoder's matrices, one at a time, for every channel.

    Args:
        matrices: As for `MixingMatrices`.
        scale: What the rows are multiplied with. (L C,).
    """

    def __init__(self, matrices: np.ndarray, scale: np.ndarray):
        self.matrices, self.scale = matrices, scale
        # A row of a Toeplitz matrix is the end of its last one.
        toeplitz, unseen = matrices.ndim == 3, matrices.shape[2] // 2
        self.last = self._spread(matrices[:, :, unseen:][:, :, ::-1]) if toeplitz else None

    def __getitem__(self, position: int) -> np.ndarray:
        """The row of a position up to itself. (position + 1, L C)."""
        if self.last is not None:
            return self.last[len(self.last) - 1 - position :]
        return self._spread(self.matrices[:, :, position, : position + 1])

    def _spread(self, row: np.ndarray) -> np.ndarray:
        row = row.transpose(2, 0, 1).reshape(row.shape[2], -1)
        return np.repeat(row, len(self.scale) // row.shape[1], axis=1) * self.scale


class BeamSearch:
    """Translates batches of token indices.

    Args:
        encoder, step: The graphs of `build_encoder` and `build_step`.
        weights: "encoder.matrix" and "decoder.matrix", as for `MixingMatrices`; "decoder.scale",
            (L C,), what A's rows are multiplied with; where the model has them "encoder.bias",
            (L, H, N), "decoder.offset", (N, L C), and the "encoder.positions" and
            "decoder.positions", (N, C).
        source_dictionary, target_dictionary: fairseq's.
        source_positions, target_positions: N of both sides, the end of a sentence included.

    Raises:
        ValueError: If a graph is broken.
    """

    def __init__(
        self,
        encoder: bytes,
        step: bytes,
        weights: dict[str, np.ndarray],
        source_dictionary,
        target_dictionary,
        source_positions: int,
        target_positions: int,
    ):
        # Batches side by side beat threads within a batch.
        self.encoder, self.step = (start(graph, threads=1) for graph in (encoder, step))
        self.weights = weights
        self.source_matrices = MixingMatrices(weights["encoder.matrix"])
        self.rows = MixingRows(weights["decoder.matrix"], weights["decoder.scale"])
        self.pad, self.end = source_dictionary.pad(), target_dictionary.eos()
        self.symbols = len(target_dictionary)
        self.source_positions, self.target_positions = source_positions, target_positions

    def search(
        self, sources: list[np.ndarray], options: SearchOptions
    ) -> list[list[tuple[np.ndarray, float]]]:
        """The finished beams of each sentence, best first: tokens without the end, and score.

        Args:
            sources: Token indices with the end of the sentence. Each (S,).
            options: How to search. The length of translations goes by the longest source.
        """
        beam, lenpen = options.beam, options.lenpen
        memory, mask = self._encode(sources)
        # Enough that K beams can go on whatever is banned: padding, <unk>, at first the end.
        beams = self._start_beams(memory, beam, width=min(2 * beam + 3, self.symbols))
        feed = self._bind(memory, mask, beams)
        longest = min(options.longest(max(map(len, sources))), self.target_positions - 1)
        for position in range(longest):
            self._step(feed, beams, position)
            beams.advance(lenpen)
            left = np.count_nonzero(beams.unfinished)
            if left == 0:
                break
            if left <= (1 - _WORTH_DROPPING) * len(beams.unfinished):
                memory, mask = memory[:, beams.unfinished], mask[beams.unfinished]
                beams.drop_finished()
                feed = self._bind(memory, mask, beams)
        else:
            self._step(feed, beams, longest)
            beams.end_all(lenpen)
        return [sorted(found, key=lambda pair: -pair[1]) for found in beams.found]

    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
        """Where the last layer looks in the source for each token, averaged over its heads.

        Args:
            source: Token indices with the end of the sentence. (S,).
            targets: Translations of it, without the end. Each (T,).

        Returns:
            Weights for the tokens of each translation and its end. Each (T + 1, S).
        """
        memory, mask = self._encode([source])
        beams = self._start_beams(memory, len(targets), width=1)
        feed, key = self._bind(memory, mask, beams), memory[-2, 0]
        steps = 1 + max(map(len, targets))
        queries = np.empty((steps, *beams.tokens.shape, beams.now.shape[2]), np.float32)
        for position, query in enumerate(queries):
            _take(feed, "query", query)
            self._step(feed, beams, position)
            beams.tokens[0] = [t[position] if position < len(t) else self.end for t in targets]
        heads, _, width = key.shape
        queries = queries.reshape(steps, len(targets), heads, width).transpose(1, 2, 0, 3)
        scores = queries @ key.swapaxes(1, 2) * width**-0.5  # (K, E, T, S)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (weights / weights.sum(-1, keepdims=True)).mean(1)
        return [rows[: len(t) + 1] for rows, t in zip(weights, targets, strict=True)]

    def _start_beams(self, memory: np.ndarray, beam: int, width: int) -> "_Beams":
        layers, sentences = len(memory) // 2, memory.shape[1]
        channels = self.weights["decoder.scale"].size // layers
        return _Beams(sentences, beam, width, self.end, layers, channels)

    def _encode(self, sources: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        length = max(map(len, sources))
        tokens = np.full((len(sources), length), self.pad)
        for row, source in zip(tokens, sources, strict=True):
            row[: len(source)] = source
        real = tokens != self.pad
        feed = {"tokens": tokens, "mask": real[..., None].astype(np.float32)}
        for layer, matrix in enumerate(self.source_matrices.squares(length)):
            feed[f"matrix_{layer}"] = matrix
        for layer, bias in enumerate(self.weights.get("encoder.bias", ())):
            feed[f"bias_{layer}"] = bias[:, :length, None]
        if "encoder.positions" in self.weights:
            feed["positions"] = self.weights["encoder.positions"][:length]
        (memory,) = self.encoder.run(["memory"], feed)
        return memory, np.where(real, np.float32(0), _FAR_BELOW)[:, None, None]

    def _bind(self, memory: np.ndarray, mask: np.ndarray, beams: "_Beams"):
        """Give the step what stays in its place until a sentence is dropped."""
        feed, beam = self.step.io_binding(), beams.tokens.shape[1]
        for layer in range(len(memory) // 2):
            _give(feed, f"key_{layer}", memory[2 * layer])
            _give(feed, f"value_{layer}", memory[2 * layer + 1])
            _give(feed, f"now_{layer}", beams.now[layer])
        _give(feed, "mask", np.repeat(mask, beam, axis=2))
        _give(feed, "width", np.array([beams.width]))
        _give(feed, "best", np.array([beams.best_tokens.shape[1]]))
        for name in ("tokens", "scores", "history"):
            _give(feed, name, getattr(beams, name))
        for name in ("best_scores", "best_tokens", "best_places", "ends"):
            _take(feed, name, getattr(beams, name))
        return feed

    def _step(self, feed: onnxruntime.IOBinding, beams: "_Beams", position: int) -> None:
        row = self.rows[position]
        beams.now[:] = row[-1].reshape(beams.now.shape)
        _give(feed, "row", row[:-1, None, None])
        for name, table in (("offset", "decoder.offset"), ("position", "decoder.positions")):
            if table in self.weights:
                _give(feed, name, self.weights[table][position : position + 1])
        _give(feed, "ancestors", beams.places)
        if beams.make_room():
            _give(feed, "history", beams.history)
        _take(feed, "values", beams.remember())
        self.step.run_with_iobinding(feed)


def start(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    """Make a graph ready to run on the CPU.

    Raises:
        ValueError: If it is broken.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        # The sum and the norm in one node take three times as long as in two.
        return onnxruntime.InferenceSession(
            graph, options, ["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
        )
    except Exception as error:  # ONNX Runtime's errors have nothing else in common
        raise ValueError(str(error)) from None


class _Beams:
    """The beams of a batch: their last tokens, their scores, and the places that they came through.

    A step reads and writes the arrays where they lie.

    Args:
        sentences: B.
        beam: K.
        width: Continuations of each beam that a step looks at.
        end: The end of a sentence.
        layers, channels: L and C.
    """

    def __init__(self, sentences: int, beam: int, width: int, end: int, layers: int, channels: int):
        self.width, self.end = width, end
        self.found: list[list[tuple[np.ndarray, float]]] = [[] for _ in range(sentences)]
        self.at_work = np.arange(sentences)  # which sentence a row is
        self.unfinished = np.ones(sentences, bool)
        self.tokens = np.full((sentences, beam), end)
        self.scores = np.full((sentences, beam, 1), -np.inf, np.float32)
        self.scores[:, 0] = 0  # the beams are alike at first: one of them counts
        self.places = np.empty((0, sentences, beam), np.int64)
        self.now = np.empty((layers, 1, channels), np.float32)
        # By place: what a step left there for the mixers, and the token that it was told.
        self.used = 0
        self.history = np.empty((8 * self.tokens.size, layers * channels), np.float32)
        self.told = np.empty(8 * self.tokens.size, np.int64)
        self._make_answers()

    def _make_answers(self) -> None:
        """What a step answers: the best continuations, and the scores of ending here."""
        sentences, beam = self.tokens.shape
        self.rows = np.arange(sentences)[:, None]
        best = sentences, min(2, self.width) * beam
        self.best_scores = np.empty(best, np.float32)
        self.best_tokens, self.best_places = np.empty(best, np.int64), np.empty(best, np.int64)
        self.ends = np.empty((sentences, beam, 1), np.float32)

    def make_room(self) -> bool:
        """Enlarge the history if a step more does not fit; returns whether it has moved."""
        full = self.used + self.tokens.size > len(self.told)
        if full:
            self.history = np.concatenate([self.history, np.empty_like(self.history)])
            self.told = np.concatenate([self.told, np.empty_like(self.told)])
        return full

    def remember(self) -> np.ndarray:
        """Add places for the last tokens; returns the part of the history to fill. (B, K, L C)."""
        new = np.arange(self.used, self.used + self.tokens.size).reshape(1, *self.tokens.shape)
        self.places = np.concatenate([self.places, new])
        new = slice(self.used, self.used + self.tokens.size)
        self.told[new] = self.tokens.ravel()
        self.used = new.stop
        return self.history[new].reshape(*self.tokens.shape, -1)

    def advance(self, lenpen: float) -> None:
        """Keep the translations that ended; go on with the best K of the others."""
        scores, tokens, parents = self.best_scores, self.best_tokens, self.best_places // self.width
        beam, ended, rows = (
            self.tokens.shape[1],
            tokens == self.end,
            np.arange(len(tokens))[:, None],
        )
        if ended.any():
            if len(self.places) > 1:  # a translation has a token
                self._keep(ended[:, :beam], scores, parents, lenpen)
            order = np.argsort(ended, axis=1, kind="stable")
            tokens, scores, parents = tokens[rows, order], scores[rows, order], parents[rows, order]
        self.tokens[:], self.scores[..., 0] = tokens[:, :beam], scores[:, :beam]
        self.places = self.places[:, rows, parents[:, :beam]]

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
        steps, _, beam = self.places.shape
        for row, rank in np.argwhere(ended).tolist():
            found, score = self.found[self.at_work[row]], scores[row, rank].item()
            if len(found) < beam and math.isfinite(score):
                places = self.places[1:, row, parents[row, rank]]
                found.append((self.told[places], score / steps**lenpen))
                self.unfinished[row] = len(found) < beam


# ONNX Runtime reads and writes NumPy's memory; its values keep the arrays alive.


def _give(feed: onnxruntime.IOBinding, name: str, value: np.ndarray) -> None:
    value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
    feed.bind_ortvalue_input(name, value)


def _take(feed: onnxruntime.IOBinding, name: str, into: np.ndarray) -> None:
    feed.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(into))
