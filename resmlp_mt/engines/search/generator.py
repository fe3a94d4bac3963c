"""fairseq's SequenceGenerator: any search that it knows, with any models of its interface."""

from weakref import proxy

import numpy as np
import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints

from resmlp_mt.engines.guides import Guide, blame, check_room
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.engine import Beams, Guides, Sentences
from resmlp_mt.engines.search.sampling import SeededSampling
from resmlp_mt.engines.search.stopping import check_wanted
from resmlp_mt.errors import BrokenModel
from resmlp_mt.tasks.search import ConstrainedBeams, mend_generator


class Generator:
    """Translates batches of token indices.

    Args:
        models: With the interface of fairseq's; several are an ensemble, which takes the mean of
            their probabilities at every step.
        symbols: The target's dictionary.
        pad: The padding symbol of sources.
        device: Where the models are.
    """

    def __init__(self, models: list, symbols, pad: int, device: str):
        self.models, self.symbols, self.pad, self.device = models, symbols, pad, device
        self.target_positions = min(model.max_decoder_positions() for model in models)

    def search(self, sources: Sentences, options: SearchOptions, guides: Guides = None) -> Beams:
        """As `Engine.search`.

        Raises:
            BrokenModel: If the scores are no numbers.
            UserError: If no translation fulfils the options and guides.
        """
        guides = guides or [Guide()] * len(sources)
        longest = min(options.longest(max(map(len, sources))), self.target_positions - 1)
        check_room(guides, longest)
        generator = self._build(options, longest, guides)
        lengths = torch.tensor(list(map(len, sources)), device=self.device)
        tokens = stack(sources, self.pad).to(self.device)
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
        sample["id"] = torch.arange(len(sources), device=self.device)
        led = {}
        if any(guide.prefix.size for guide in guides):
            prefixes = stack([guide.prefix for guide in guides], self.symbols.pad())
            led["prefix_tokens"] = prefixes.to(self.device)
        if options.constraints:
            wanted = [list(map(torch.from_numpy, guide.constraints)) for guide in guides]
            led["constraints"] = pack_constraints(wanted)
        try:
            results = generator.generate(self.models, sample, **led)
        except AssertionError:  # nothing is finished: no score is a number, or all is barred
            bars = options.no_repeat_ngram_size and any(guide.leads for guide in guides)
            if bars or options.constraints:
                raise blame(
                    guides,
                    "no translation holds the prefix or the words that it must: they repeat what "
                    "no_repeat_ngram_size bars, or have no room; ask for less of them, bar less, "
                    "or allow longer translations",
                ) from None
            raise BrokenModel("the model finds no translation; its weights are broken") from None
        return [
            [(found["tokens"][:-1].cpu().numpy(), float(found["score"])) for found in beams]
            for beams in results
        ]

    # No cycles of references here: a model's memory would wait for the garbage collector.
    def _build(
        self, options: SearchOptions, longest: int, guides: list[Guide]
    ) -> SequenceGenerator:
        if options.sampling:
            strategy = SeededSampling(self.symbols, options, guides)
        elif options.constraints:
            strategy = ConstrainedBeams(self.symbols, options.constraints)
        else:
            strategy = BeamSearch(self.symbols)
        generator = SequenceGenerator(
            self.models,
            self.symbols,
            beam_size=options.beam,
            len_penalty=options.lenpen,
            max_len_b=longest,
            unk_penalty=float("inf"),  # raw text has no <unk>
            temperature=options.temperature,
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            search_strategy=strategy,
        )
        model, step = proxy(generator.model), type(generator.model).forward_decoder
        generator.model.forward_decoder = lambda *given: check_wanted() or step(model, *given)
        return mend_generator(generator)


class Ensemble(Generator):
    """Searches with the mean of the models' probabilities at every step, as fairseq does.

    Args:
        engines: `FairseqSearch` or `FoldedSearch`, of models with the same dictionaries and on the
            same device.
        symbols: The target's dictionary.
        pad: The padding symbol of sources.
    """

    def __init__(self, engines: list, symbols, pad: int):
        super().__init__([engine.model for engine in engines], symbols, pad, engines[0].device)
        self.engines = engines
        self.source_positions = min(engine.source_positions for engine in engines)

    def attend(self, source: np.ndarray, targets: Sentences) -> list[np.ndarray]:
        """The mean of the models' weights. Each (T + 1, S)."""
        each = [engine.attend(source, targets) for engine in self.engines]
        return [np.mean(weights, axis=0) for weights in zip(*each, strict=True)]

    def score(self, sources: Sentences, targets: Sentences) -> np.ndarray:
        """The mean of the models' log-probabilities. (B,)."""
        return np.mean([engine.score(sources, targets) for engine in self.engines], axis=0)


def stack(rows: list[np.ndarray], pad: int) -> torch.Tensor:
    """Rows of several lengths as one tensor, padded on the right. (B, L)."""
    return torch.nn.utils.rnn.pad_sequence(
        list(map(torch.from_numpy, rows)), batch_first=True, padding_value=pad
    )
