"""Beam search with a folded translator in compiled code: finds what fairseq's generator finds.

Shapes as in `nn/__init__.py`. Besides, M is beams of a sentence, and K symbols to choose from.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from pathlib import Path

import numpy as np

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.guides import check_room
from resmlp_mt.engines.kernels.decoder import DecoderKernel
from resmlp_mt.engines.kernels.encoder import EncoderKernel
from resmlp_mt.engines.kernels.steps import Found, Steps
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.engine import Beams, Guides, Sentences
from resmlp_mt.engines.search.shortlist import Choice, Shortlist
from resmlp_mt.engines.search.stopping import check_wanted
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_extra

# Searches that an exported model leaves to fairseq.
_MORE = (
    "more than a plain beam search (samples, no repeats, constraints, a glossary, temperature, "
    "ensembles)"
)
# The most between two checks that a search is still wanted: steps, and steps times beams.
_STEPS_UNASKED = 16
_ROWS_UNASKED = 1000


def _explained(compute: Callable) -> Callable:
    """A method of an engine that reports an export that it cannot compute with as broken."""

    @wraps(compute)
    def explained(self, *args):
        with computing(self.folder):
            return compute(self, *args)

    return explained


class FoldedSearch:
    """Translates batches of token indices with a folded model, laid out for the compiled code.

    Args:
        config: As `describe_translator` made it.
        arrays: The weights that `config` names, and those of `describe_mixing`.
        source_dictionary, target_dictionary: A `Vocabulary` each, or a `Dictionary` of fairseq.
        preview: As for `DecoderKernel`.
        shortlist: The arrays of a `Shortlist`, which bounds the symbols of translations.
        folder: The export's name in messages.
        unknown: Whether translations may hold <unk>.

    Attributes:
        source_positions, target_positions: N of both sides, the end of a sentence included.

    Raises:
        ValueError: If something does not fit.
        UserError: If there is no compiled code.
    """

    device = "cpu"

    def __init__(
        self,
        config: dict,
        arrays: dict[str, np.ndarray],
        source_dictionary,
        target_dictionary,
        preview: dict[str, np.ndarray] | None = None,
        shortlist: dict[str, np.ndarray] | None = None,
        folder: Path | str = "the model",
        unknown: bool = False,
    ):
        self.folder, self.dictionaries = folder, (source_dictionary, target_dictionary)
        self.pad, self.end = source_dictionary.pad(), target_dictionary.eos()
        self.symbols = len(target_dictionary)
        self.source_positions = config["source_positions"]
        self.target_positions = config["target_positions"]
        banned = [target_dictionary.pad()] + [target_dictionary.unk()] * (not unknown)
        sizes = self.symbols, self.target_positions
        self.decoder = DecoderKernel(config["decoder"], arrays, *sizes, banned, self.end, preview)
        sizes = len(source_dictionary), self.source_positions, self.decoder.sides
        self.encoder = EncoderKernel(config["encoder"], arrays, *sizes)
        self.shortlist = shortlist and Shortlist(shortlist, self.decoder.select, *self.dictionaries)

    @cached_property
    def model(self):
        """The kernels as a model for fairseq's generator: an `ExportedModel`.

        Raises:
            UserError: If fairseq is not installed.
        """
        module = import_extra("resmlp_mt.engines.exported_model", _MORE)
        return module.ExportedModel(self.encoder, self.decoder, self.dictionaries, self.folder)

    @cached_property
    def generator(self):
        """The search for more than a plain beam: a `Generator`."""
        module = import_extra("resmlp_mt.engines.search.generator", _MORE)
        return module.Generator([self.model], self.dictionaries[1], self.pad, self.device)

    def search(self, sources: Sentences, options: SearchOptions, guides: Guides = None) -> Beams:
        """As `Engine.search`.

        fairseq's generator does all but beam searches with forced beginnings, with the same steps.

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
    def _generate(self, *asked) -> Beams:
        return self.generator.search(*asked)

    @_explained
    def find(
        self, sources: Sentences, options: SearchOptions, guides: Guides = None
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
        sources: Sentences,
        options: SearchOptions,
        guides: Guides,
        shortlist: Shortlist | None,
    ) -> list[list[Found]]:
        prefixes = [guide.prefix for guide in guides or ()]
        self._check_symbols(prefixes)
        choice = shortlist and shortlist.choose(sources, prefixes)
        symbols = len(choice.candidates) if choice else self.symbols
        longest = min(options.longest(max(map(len, sources))), self.target_positions - 1)
        check_room(guides or [], longest)
        # Enough that M beams can go on whatever is banned: padding, <unk>, at first the end.
        width = min(2 * options.beam + 3, symbols)
        steps = self._start(sources, options.beam, width, longest + 1, choice)
        if any(map(len, prefixes)):
            self._force(steps, prefixes)
        while steps.steps < longest and steps.unfinished.any():
            check_wanted()
            rows = len(steps.unfinished) * options.beam
            unasked = max(1, min(_STEPS_UNASKED, _ROWS_UNASKED // rows))
            steps.search(min(steps.steps + unasked, longest))
        if steps.unfinished.any():
            steps.run()
            steps.end_all()
            steps.advance()
        return steps.collect(options.lenpen)

    def _force(self, steps: Steps, prefixes: Sentences) -> None:
        """Run the steps of the forced beginnings."""
        symbols = len(steps.choice.candidates) if steps.choice else self.symbols
        for position in range(max(map(len, prefixes))):
            check_wanted()
            log_p = np.empty((*steps.tokens.shape, symbols), np.float32)
            forced = [len(prefixes[sentence]) > position for sentence in steps.at_work]
            steps.answer(log_p=log_p, forced=np.array(forced))
            steps.run()
            steps.force([prefix[position : position + 1] for prefix in prefixes], log_p)
            steps.advance()
        steps.bind()  # which need not answer log_p any more

    @_explained
    def attend(self, source: np.ndarray, targets: Sentences) -> list[np.ndarray]:
        """As `Engine.attend`.

        Raises:
            UserError: If a translation is too long for the model, or a token of it is not in the
                dictionary.
        """
        steps = self._start([source], len(targets), 1, self._count_steps(targets))
        query = np.empty((len(targets), self.decoder.channels), np.float32)
        steps.answer(query=query)
        queries = np.stack([query.copy() for _ in self._follow(steps, targets)])
        heads, _, width = steps.keys.shape
        queries = queries.reshape(*queries.shape[:2], heads, width).transpose(1, 2, 0, 3)
        scores = queries @ steps.keys.swapaxes(1, 2) * width**-0.5  # (M, E, T, S)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (weights / weights.sum(-1, keepdims=True)).mean(1)
        return [rows[: len(t) + 1] for rows, t in zip(weights, targets, strict=True)]

    @_explained
    def score(self, sources: Sentences, targets: Sentences) -> np.ndarray:
        """As `Engine.score`. The shortlist and the preview leave nothing out here.

        Raises:
            UserError: As `attend`.
        """
        steps = self._start(sources, 1, 1, self._count_steps(targets))
        log_p = np.empty((len(sources), 1, self.symbols), np.float32)
        steps.answer(log_p=log_p, forced=np.ones(len(sources), bool))
        rows, lengths = np.arange(len(sources)), np.array(list(map(len, targets)))
        total = np.zeros(len(sources))
        for position, meant in enumerate(self._follow(steps, targets)):
            total += np.where(position <= lengths, log_p[rows, 0, meant], 0)
        return total

    def _follow(self, steps: Steps, targets: Sentences) -> Iterator[list[int]]:
        """Run the steps of given translations. Yield after each the next token of all of them."""
        for position in range(steps.longest):
            steps.run()
            meant = [t[position] if position < len(t) else self.end for t in targets]
            yield meant
            steps.tokens.flat = meant

    def _count_steps(self, targets: Sentences) -> int:
        """How many steps lead through all translations and their ends."""
        self._check_symbols(targets)
        steps = 1 + max(map(len, targets))
        if steps > self.target_positions:
            raise UserError(
                f"a translation of {steps - 1} subwords; the model has room for "
                f"{self.target_positions - 1}"
            )
        return steps

    def _check_symbols(self, targets: Sentences) -> None:
        # Once for all steps: compiled code looks tokens up wherever they point.
        for target in targets:
            if len(target) and not 0 <= target.min() <= target.max() < self.symbols:
                raise UserError(f"tokens {target}, of {self.symbols} in the dictionary")

    def _start(
        self,
        sources: Sentences,
        beam: int,
        width: int,
        longest: int,
        choice: Choice | None = None,
    ) -> Steps:
        """Encode a batch; arguments as for `Steps`."""
        tokens = np.full((len(sources), max(map(len, sources))), self.pad)
        for row, source in zip(tokens, sources, strict=True):
            row[: len(source)] = source
        memory = self.encoder(tokens, tokens != self.pad)
        return Steps(self.decoder, memory, beam, width, longest, choice)
