"""Beam search with a folded translator, in compiled code or in the graphs of ONNX Runtime.

It finds what fairseq's SequenceGenerator finds. Beams share their past: what a position leaves for
the mixers is kept where it was computed, and a beam is the list of places that it came through. So
nothing is reordered, and dropping a sentence costs no more than its keys and values.

Shapes as in `translation_graphs.py`.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np

from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_with_fairseq, import_with_onnx
from resmlp_mt.inference.beams import Beams, Found
from resmlp_mt.inference.broken import computing
from resmlp_mt.inference.guides import Guide, check_room
from resmlp_mt.inference.mixing import MixingMatrices, MixingRows
from resmlp_mt.inference.native_encoder import NativeEncoder
from resmlp_mt.inference.native_memory import NativeMemory
from resmlp_mt.inference.native_step import NativeDecoder, NativeStep
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.shortlist import Choice, Shortlist
from resmlp_mt.inference.stopping import check_wanted

if TYPE_CHECKING:  # compiled code does without it
    import onnxruntime

    from resmlp_mt.inference.onnx_step import OnnxStep

# What an exported model leaves to fairseq.
_MORE = "more than a plain beam search (samples, constraints, a glossary, temperature, ensembles)"
_FAR_BELOW = np.float32(-1e9)
# Share of finished sentences from which on it pays to drop them.
_WORTH_DROPPING = 0.2
# Between two questions whether a search is still wanted: steps, and beams that go a step.
_STEPS_UNASKED = 16
_ROWS_UNASKED = 1000


def _explained(compute: Callable) -> Callable:
    """A method of an engine that says of what it cannot compute that the export is broken."""

    @wraps(compute)
    def explained(self, *args):
        with computing(self.folder):
            return compute(self, *args)

    return explained


def _count_enough(beams: Beams) -> int:
    """Unfinished sentences at which it pays to drop the others."""
    return int((1 - _WORTH_DROPPING) * len(beams.unfinished))


def _drop_finished(
    step: "OnnxStep | NativeStep", beams: Beams, choice: Choice | None
) -> Choice | None:
    """Drop finished sentences where that pays. Returns the choice of the others."""
    if 0 < np.count_nonzero(beams.unfinished) <= _count_enough(beams):
        choice = choice and choice.keep(beams.unfinished)
        beams.drop_finished()
        step.bind(choice)
    return choice


class FoldedSearch:
    """Translates batches of token indices.

    Args:
        encoder, step: The graphs of `build_encoder` and `build_step`; None where compiled code does
            all that is asked for.
        weights: "encoder.matrix" and "decoder.matrix", as for `MixingMatrices`; "decoder.scale",
            (D C,), what A's rows are multiplied with; where the model has them "encoder.bias",
            (D, H, N), "decoder.offset", (N, D C), and the "encoder.positions" and
            "decoder.positions", (N, C).
        shared: The weights that the graphs have beside them, by name.
        source_dictionary, target_dictionary: fairseq's.
        source_positions, target_positions: N of both sides, the end of a sentence included.
        selecting_step, select: The step that selects, and the graph of `build_selection`.
        shortlist: The arrays of a `Shortlist`.
        native: The decoder for compiled code, which then takes the place of the graphs of a step
            where it can.
        native_encoder: The encoder for compiled code, in the place of its graph.
        folder: What messages call the export.

    Raises:
        ValueError: If a graph is broken, or something does not fit.
    """

    device = "cpu"

    def __init__(
        self,
        encoder: bytes | None,
        step: bytes | None,
        weights: dict[str, np.ndarray],
        shared: dict[str, np.ndarray],
        source_dictionary,
        target_dictionary,
        source_positions: int,
        target_positions: int,
        selecting_step: bytes | None = None,
        select: bytes | None = None,
        shortlist: dict[str, np.ndarray] | None = None,
        native: NativeDecoder | None = None,
        native_encoder: NativeEncoder | None = None,
        folder: Path | str = "the model",
    ):
        self.folder = folder
        self._shared = shared
        self.native_encoder = native_encoder
        self._encoder = None if native_encoder else self._start(encoder)
        self._step_graph = step
        self.weights = weights
        # What a step adds at its position, where the model has it.
        tables = {"offset": "decoder.offset", "position": "decoder.positions"}
        self.tables = {name: weights[key] for name, key in tables.items() if key in weights}
        self.source_matrices = MixingMatrices(weights["encoder.matrix"])
        self.rows = MixingRows(weights["decoder.matrix"], weights["decoder.scale"])
        self.source_dictionary, self.target_dictionary = source_dictionary, target_dictionary
        self.pad, self.end = source_dictionary.pad(), target_dictionary.eos()
        self.symbols = len(target_dictionary)
        self.source_positions, self.target_positions = source_positions, target_positions
        self.native, self.shortlist = native, None
        if shortlist is not None:
            choose = native.select if native else self._start_select(select)
            if not native:
                self.selecting_step = self._start(selecting_step)
            vocabularies = len(source_dictionary), self.symbols
            unknown = target_dictionary.unk()
            self.shortlist = Shortlist(shortlist, choose, vocabularies, self.end, unknown)
        elif not native:
            self.step  # noqa: B018  # found broken now rather than later

    def _start(self, graph: bytes) -> "onnxruntime.InferenceSession":
        # Batches side by side beat threads within a batch.
        return import_with_onnx("resmlp_mt.inference.onnx_step").start(graph, 1, self._shared)

    def _start_select(self, graph: bytes) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        session = self._start(graph)
        names = [output.name for output in session.get_outputs()]
        return lambda found: dict(
            zip(names, session.run(names, {"candidates": found}), strict=True)
        )

    @cached_property
    def step(self) -> "onnxruntime.InferenceSession":
        """The step over all tokens, which a shortlist seldom needs."""
        return self._start(self._step_graph)

    @cached_property
    def model(self):
        """The graphs as a model for fairseq's generator: an `ExportedModel`.

        Raises:
            UserError: If they are too old for that, or fairseq is not installed.
        """
        self._check_log_p()
        made = import_with_fairseq("resmlp_mt.inference.exported_model", _MORE).ExportedModel
        return made(proxy(self))  # else a circle: memory would wait for the garbage collector

    def _check_log_p(self) -> None:
        if "log_p" not in [output.name for output in self.step.get_outputs()]:
            raise UserError(
                "this export only does plain beam search: export the model again to sample, to "
                "force prefixes, constraints or a glossary, to bar repeats, or to join it with "
                "others"
            )

    @cached_property
    def generator(self):
        """What searches with more than a plain beam: a `Generator`."""
        made = import_with_fairseq("resmlp_mt.inference.generator", _MORE).Generator
        return made([self.model], self.target_dictionary, self.pad, self.device)

    def search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[tuple[np.ndarray, float]]]:
        """As `Engine.search`.

        What is more than a beam search with forced beginnings, fairseq's generator does with the
        same graphs.

        Raises:
            UserError: If a beginning does not fit into a translation, or a token of it is not in
                the dictionary.
        """
        if not options.is_plain:
            return self._generate(sources, options, guides)
        return [
            [(beam.tokens, beam.score) for beam in beams]
            for beams in self.find(sources, options, guides)
        ]

    @_explained
    def _generate(self, *asked) -> list[list[tuple[np.ndarray, float]]]:
        return self.generator.search(*asked)

    @_explained
    def find(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[Found]]:
        """`search` for a plain beam search, with the log-probabilities of each beam's tokens."""
        if not (self.shortlist and options.shortlist):
            return self._search(sources, options, guides, shortlist=None)
        found: list = [None] * len(sources)
        known = np.array([self.shortlist.knows(source) for source in sources])
        for part, shortlist in ((known, self.shortlist), (~known, None)):
            if part := np.flatnonzero(part).tolist():
                led = guides and [guides[i] for i in part]
                results = self._search([sources[i] for i in part], options, led, shortlist)
                for i, result in zip(part, results, strict=True):
                    found[i] = result
        return found

    def _search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None,
        shortlist: Shortlist | None,
    ) -> list[list[Found]]:
        prefixes = [guide.prefix for guide in guides or ()]
        led = max(map(len, prefixes), default=0)
        self._check_symbols(prefixes)
        if led and not shortlist and not self.native:
            self._check_log_p()
        choice = shortlist and shortlist.choose(sources, prefixes)
        symbols = len(choice.candidates) if choice else self.symbols
        longest = min(options.longest(max(map(len, sources))), self.target_positions - 1)
        check_room(guides or [], longest)
        # Enough that M beams can go on whatever is banned: padding, <unk>, at first the end.
        width = min(2 * options.beam + 3, symbols)
        beams = self._start_beams(len(sources), options.beam, width, longest + 1)
        step = self._begin(self._pad(sources), beams, choice)
        if led:
            choice = self._force(step, beams, prefixes, choice)
        position = led
        while position < longest and beams.unfinished.any():
            check_wanted()
            steps = min(_STEPS_UNASKED, _ROWS_UNASKED // (len(beams.unfinished) * options.beam))
            until = min(position + max(1, steps), longest)
            position = step.search(position, until, _count_enough(beams))
            choice = _drop_finished(step, beams, choice)
        if beams.unfinished.any():
            step.run(longest)
            beams.end_all()
        return beams.collect(options.lenpen)

    def _force(
        self,
        step: "OnnxStep | NativeStep",
        beams: Beams,
        prefixes: list[np.ndarray],
        choice: Choice | None,
    ) -> Choice | None:
        """Run the steps of the forced beginnings. Returns the choice of those still at work."""
        symbols = len(choice.candidates) if choice else self.symbols
        for position in range(max(map(len, prefixes))):
            check_wanted()
            log_p = np.empty((*beams.tokens.shape, symbols), np.float32)
            forced = [len(prefixes[sentence]) > position for sentence in beams.at_work]
            step.answer_log_p(log_p, np.array(forced))
            step.run(position)
            tokens = [prefix[position : position + 1] for prefix in prefixes]
            beams.force(tokens, log_p, choice and choice.candidates)
            if beams.advance():
                step.bind(choice)
            choice = _drop_finished(step, beams, choice)
        step.bind(choice)  # which need not answer log_p any more
        return choice

    @_explained
    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
        """As `Engine.attend`.

        Raises:
            UserError: If a translation is too long for the model, or a token of it is not in the
                dictionary.
        """
        self._check_symbols(targets)
        steps = 1 + max(map(len, targets))
        if steps > self.target_positions:
            raise UserError(
                f"a translation of {steps - 1} subwords; the model has room for "
                f"{self.target_positions - 1}"
            )
        beams = self._start_beams(1, len(targets), 1, steps)
        choice = self.shortlist and self.shortlist.choose([source], [])
        step = self._begin(source[None], beams, choice)
        queries = np.empty((steps, *beams.tokens.shape, beams.now.shape[2]), np.float32)
        for position, query in enumerate(queries):
            step.answer("query", query)
            step.run(position)
            beams.tokens[0] = [t[position] if position < len(t) else self.end for t in targets]
        key = step.keys
        heads, _, width = key.shape
        queries = queries.reshape(steps, len(targets), heads, width).transpose(1, 2, 0, 3)
        scores = queries @ key.swapaxes(1, 2) * width**-0.5  # (M, E, T, S)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (weights / weights.sum(-1, keepdims=True)).mean(1)
        return [rows[: len(t) + 1] for rows, t in zip(weights, targets, strict=True)]

    def _check_symbols(self, targets: list[np.ndarray]) -> None:
        # Once for all steps: compiled code looks tokens up wherever they point.
        for target in targets:
            if len(target) and not 0 <= target.min() <= target.max() < self.symbols:
                raise UserError(f"tokens {target}, of {self.symbols} in the dictionary")

    def _start_beams(self, sentences: int, beam: int, width: int, longest: int) -> Beams:
        layers = len(self.weights["decoder.matrix"])
        channels = self.weights["decoder.scale"].size // layers
        dtype = self.native.dtype if self.native else np.float32
        return Beams(sentences, beam, width, self.end, layers, channels, longest, dtype)

    def _pad(self, sources: list[np.ndarray]) -> np.ndarray:
        tokens = np.full((len(sources), max(map(len, sources))), self.pad)
        for row, source in zip(tokens, sources, strict=True):
            row[: len(source)] = source
        return tokens

    @_explained
    def encode(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The keys and values of the sources, and the mask that the step adds to the scores.

        Args:
            tokens: Padded on the right. (B, S).

        Returns:
            (2 D, B, E, S, C / E) and (B, 1, 1, S).
        """
        real = tokens != self.pad
        mask = np.where(real, np.float32(0), _FAR_BELOW)[:, None, None]
        if self.native_encoder:
            return self.native_encoder(tokens, real).to_graph(), mask
        return self._run_encoder(tokens, real), mask

    def _run_encoder(self, tokens: np.ndarray, real: np.ndarray) -> np.ndarray:
        """The keys and values, by the graph. real: where tokens are no padding. Both (B, S)."""
        length = tokens.shape[1]
        feed = {"tokens": tokens, "mask": real[..., None].astype(np.float32)}
        for layer, matrix in enumerate(self.source_matrices.squares(length)):
            feed[f"matrix_{layer}"] = matrix
        for layer, bias in enumerate(self.weights.get("encoder.bias", ())):
            feed[f"bias_{layer}"] = bias[:, :length, None]
        if "encoder.positions" in self.weights:
            feed["positions"] = self.weights["encoder.positions"][:length]
        return self._encoder.run(["memory"], feed)[0]

    @_explained
    def step_log_p(
        self,
        tokens: np.ndarray,
        history: np.ndarray,
        places: np.ndarray,
        memory: np.ndarray,
        mask: np.ndarray,
        run_options: "onnxruntime.RunOptions",
    ) -> list[np.ndarray]:
        """Log-probabilities of the next tokens, (B, M, V), and what the step leaves: (B, M, D C).

        Args:
            tokens: The last ones. (B, M).
            history: What earlier steps left. (n, D C).
            places: The rows of it that each beam comes from. (t, B, M).
            memory, mask: What `encode` returned.
            run_options: For ONNX Runtime.
        """
        row = self.rows[len(places)]
        feed = {
            "tokens": tokens,
            "history": history,
            "ancestors": places,
            "row": row[:-1, None, None],
            "mask": np.repeat(mask, tokens.shape[1], axis=2),
        }
        for layer, now in enumerate(row[-1].reshape(len(memory) // 2, 1, -1)):
            feed[f"now_{layer}"] = now
            feed[f"key_{layer}"], feed[f"value_{layer}"] = memory[2 * layer : 2 * layer + 2]
        feed |= {n: table[len(places) : len(places) + 1] for n, table in self.tables.items()}
        # Inputs of the choice among candidates, which is not made here.
        feed |= {"scores": np.zeros((*tokens.shape, 1), np.float32)}
        feed |= {"width": np.array([1]), "best": np.array([1])}
        return self.step.run(["log_p", "values"], feed, run_options)

    def _begin(
        self, tokens: np.ndarray, beams: Beams, choice: Choice | None
    ) -> "OnnxStep | NativeStep":
        """What runs the steps of a batch of sources, padded on the right. (B, S)."""
        about, real = (beams, choice, self.rows, self.tables), tokens != self.pad
        if self.native_encoder:
            return NativeStep(self.native, self.native_encoder(tokens, real), *about)
        memory, mask = self.encode(tokens)
        if self.native:
            decoder = self.native
            sides = 2 * decoder.layers, decoder.heads, decoder.channels // decoder.heads
            return NativeStep(decoder, NativeMemory.from_graph(sides, real, memory), *about)
        step = import_with_onnx("resmlp_mt.inference.onnx_step").OnnxStep
        return step(self.selecting_step if choice else self.step, memory, mask, *about)
