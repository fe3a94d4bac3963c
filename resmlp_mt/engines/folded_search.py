"""Beam search with a folded translator.

It finds what fairseq's SequenceGenerator finds. Beams share their past: what a position leaves for
the mixers is kept where it was computed, and a beam is the list of places that it came through. So
nothing is reordered, and dropping a sentence costs no more than its keys and values.

Shapes as in `translation_graphs.py`.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.compiled_code.step import NativeStep
from resmlp_mt.engines.compiled_code.translator import NativeBackend
from resmlp_mt.engines.guides import Guide, check_room
from resmlp_mt.engines.onnx.backend import OnnxBackend
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.beams import Beams, Found
from resmlp_mt.engines.search.shortlist import Choice, Shortlist
from resmlp_mt.engines.search.stopping import check_wanted
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_with_fairseq

if TYPE_CHECKING:  # compiled code does without it
    from resmlp_mt.engines.onnx.step import OnnxStep

# What an exported model leaves to fairseq.
_MORE = (
    "more than a plain beam search (samples, no repeats, constraints, a glossary, temperature, "
    "ensembles)"
)
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
        backend: What computes.
        source_dictionary, target_dictionary: A `Vocabulary` each, or a `Dictionary` of fairseq.
        source_positions, target_positions: N of both sides, the end of a sentence included.
        shortlist: Which symbols the translations of a sentence choose from.
        folder: What messages call the export.
    """

    device = "cpu"

    def __init__(
        self,
        backend: OnnxBackend | NativeBackend,
        source_dictionary,
        target_dictionary,
        source_positions: int,
        target_positions: int,
        shortlist: Shortlist | None = None,
        folder: Path | str = "the model",
    ):
        self.backend, self.shortlist, self.folder = backend, shortlist, folder
        self.source_dictionary, self.target_dictionary = source_dictionary, target_dictionary
        self.pad, self.end = source_dictionary.pad(), target_dictionary.eos()
        self.symbols = len(target_dictionary)
        self.source_positions, self.target_positions = source_positions, target_positions

    @cached_property
    def model(self):
        """What computes as a model for fairseq's generator: an `ExportedModel`.

        Raises:
            UserError: If the graphs are too old for that, or fairseq is not installed.
        """
        self.backend.check_log_p()
        module = import_with_fairseq("resmlp_mt.engines.exported_model", _MORE)
        dictionaries = self.source_dictionary, self.target_dictionary
        positions = self.source_positions, self.target_positions
        return module.ExportedModel(self.backend, dictionaries, positions, self.folder)

    @cached_property
    def generator(self):
        """What searches with more than a plain beam: a `Generator`."""
        module = import_with_fairseq("resmlp_mt.engines.search.generator", _MORE)
        return module.Generator([self.model], self.target_dictionary, self.pad, self.device)

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
        choice = shortlist and shortlist.choose(sources, prefixes)
        symbols = len(choice.candidates) if choice else self.symbols
        longest = min(options.longest(max(map(len, sources))), self.target_positions - 1)
        check_room(guides or [], longest)
        # Enough that M beams can go on whatever is banned: padding, <unk>, at first the end.
        width = min(2 * options.beam + 3, symbols)
        beams = self._start_beams(len(sources), options.beam, width, longest + 1)
        step = self._begin(sources, beams, choice)
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
        steps = self._count_steps(targets)
        beams = self._start_beams(1, len(targets), 1, steps)
        choice = self.shortlist and self.shortlist.choose([source], [])
        step = self._begin([source], beams, choice)
        shape = steps, *beams.tokens.shape, self.backend.rows.channels
        queries = np.empty(shape, np.float32)
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

    @_explained
    def score(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
        """As `Engine.score`. The shortlist and the preview leave nothing out here.

        Raises:
            UserError: As `attend`.
        """
        steps = self._count_steps(targets)
        beams = self._start_beams(len(sources), 1, 1, steps)
        step = self._begin(sources, beams, None)
        log_p = np.empty((len(sources), 1, self.symbols), np.float32)
        step.answer_log_p(log_p, np.ones(len(sources), bool))
        rows, lengths = np.arange(len(sources)), np.array(list(map(len, targets)))
        total = np.zeros(len(sources))
        for position in range(steps):
            step.run(position)
            meant = [t[position] if position < len(t) else self.end for t in targets]
            total += np.where(position <= lengths, log_p[rows, 0, meant], 0)
            beams.tokens[:, 0] = meant
        return total

    def _count_steps(self, targets: list[np.ndarray]) -> int:
        """How many steps lead through all translations and their ends."""
        self._check_symbols(targets)
        steps = 1 + max(map(len, targets))
        if steps > self.target_positions:
            raise UserError(
                f"a translation of {steps - 1} subwords; the model has room for "
                f"{self.target_positions - 1}"
            )
        return steps

    def _check_symbols(self, targets: list[np.ndarray]) -> None:
        # Once for all steps: compiled code looks tokens up wherever they point.
        for target in targets:
            if len(target) and not 0 <= target.min() <= target.max() < self.symbols:
                raise UserError(f"tokens {target}, of {self.symbols} in the dictionary")

    def _start_beams(self, sentences: int, beam: int, width: int, longest: int) -> Beams:
        rows, dtype = self.backend.rows, self.backend.dtype
        sizes = rows.layers, rows.channels, longest
        return Beams(sentences, beam, width, self.end, *sizes, dtype)

    def _begin(
        self, sources: list[np.ndarray], beams: Beams, choice: Choice | None
    ) -> "OnnxStep | NativeStep":
        tokens = np.full((len(sources), max(map(len, sources))), self.pad)
        for row, source in zip(tokens, sources, strict=True):
            row[: len(source)] = source
        return self.backend.begin(tokens, tokens != self.pad, beams, choice)
