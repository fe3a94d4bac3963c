"""fairseq's generator in compiled code, where that finds the same: for `fairseq-generate`."""

import math
import zlib
from weakref import proxy

import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from resmlp_mt.inference.beams import Found
from resmlp_mt.inference.compiled import CompiledSearch, can_compile
from resmlp_mt.inference.options import SearchOptions


def compile_generator(generator: SequenceGenerator, source_dictionary) -> None:
    """Let a generator search in compiled code where it can: one of ours in a plain beam search.

    Everything else it does as before.
    """
    if type(generator) is SequenceGenerator:
        generator.generate = _Generate(generator, source_dictionary)


class _Generate:
    """`SequenceGenerator.generate`."""

    def __init__(self, generator: SequenceGenerator, source_dictionary):
        self._generator = proxy(generator)  # which holds this
        self._source_dictionary = source_dictionary
        self._search, self._made_of = None, None

    def __call__(self, models, sample: dict, **given) -> list[list[dict[str, Tensor]]]:
        generator, model = self._generator, self._generator.model.single_model
        found = None
        if self._is_plain(given) and not model.training and can_compile(model):
            found = self._find(model, sample["net_input"]["src_tokens"])
        if found is None:
            return SequenceGenerator.generate(generator, models, sample, **given)
        return [[_describe(beam, generator.eos) for beam in beams] for beams in found]

    def _is_plain(self, given: dict) -> bool:
        generator = self._generator
        search = generator.search
        return (
            not any(value is not None for value in given.values())
            and generator.model.models_size == 1
            and type(search) is BeamSearch
            and not search.stop_on_max_len
            and generator.min_len == 1
            and generator.temperature == 1
            and generator.unk_penalty in (0, math.inf)
            and generator.eos == generator.tgt_dict.eos()
            and not generator.match_source_len
            and generator.repeat_ngram_blocker is None
            and generator.token_indices_to_suppress is None
            and generator.lm_model is None
        )

    def _find(self, model, tokens: Tensor) -> list[list[Found]] | None:
        """What the compiled search finds; None where it leaves the batch to fairseq."""
        generator = self._generator
        if model.decoder.need_attn:  # for --print-alignment
            return None
        # Beams that outnumber the symbols are filled in another order. Longer sources than it was
        # trained for a model takes or refuses by itself.
        many = 2 * generator.beam_size >= generator.vocab_size
        if many or tokens.size(1) > model.encoder.longest:
            return None
        longest = int(generator.max_len_a * tokens.size(1) + generator.max_len_b)
        longest = min(longest, generator.max_len - 1)
        lenpen = generator.len_penalty if generator.normalize_scores else 0.0
        try:
            options = SearchOptions(generator.beam_size, lenpen=lenpen, max_len_b=longest)
        except ValueError:  # beyond what it counts with
            return None
        sources = [row[row != generator.pad].numpy() for row in tokens]
        found = self._compile(model).find(sources, options)
        return found if all(found) else None

    def _compile(self, model) -> CompiledSearch:
        made_of = _identify_weights(model)
        if made_of != self._made_of:
            symbols = self._generator.tgt_dict
            banned = [symbols.pad()]
            if self._generator.unk_penalty:
                banned.append(symbols.unk())
            self._search = CompiledSearch(model, self._source_dictionary, symbols, banned)
            self._made_of = made_of
        return self._search


def _identify_weights(model) -> list:
    """What changes with the weights."""
    # Before it generates, fairseq gives a model a `train` that refuses. Then weights change by
    # loading others, which counts up their version. Optimizers go round that count.
    if "train" in vars(model):
        return [(id(p), p._version) for p in model.parameters()]
    return [zlib.crc32(p.detach().contiguous().numpy()) for p in model.parameters()]


def _describe(beam: Found, end: int) -> dict[str, Tensor]:
    """A hypothesis as fairseq's generator returns it."""
    return {
        "tokens": torch.tensor([*beam.tokens.tolist(), end]),
        "score": torch.tensor(beam.score),
        "attention": torch.empty(0),
        "alignment": torch.empty(0),
        "positional_scores": torch.from_numpy(beam.log_p),
    }
