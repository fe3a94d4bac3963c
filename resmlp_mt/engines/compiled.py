"""Checkpoints in the compiled search: folded in memory, as an export is on the disk."""

import math
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.kernels.library import find_kind
from resmlp_mt.engines.kernels.steps import Found
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.engine import Guides, Sentences
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.translation import ResMLPModel
from resmlp_mt.models.translation.folded import FOLDED, describe_mixing, describe_translator
from resmlp_mt.nn.mixers import (
    FreeMatrix,
    GatedMixer,
    LinearMixer,
    ProjectedMixer,
    ToeplitzMatrix,
)

# Parts that the compiled code knows. One that somebody exchanged or hooked may do other things.
_KNOWN = FOLDED | {
    ResMLPModel, LinearMixer, GatedMixer, ProjectedMixer, FreeMatrix, ToeplitzMatrix,
}  # fmt: skip


def can_compile(model) -> bool:
    """Whether `CompiledSearch` takes a model: one of ours, in fp32 on a CPU that it runs on."""
    return (
        type(model) is ResMLPModel
        and find_kind() is not None
        and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())
        and all(
            type(part) in _KNOWN and not (part._forward_hooks or part._forward_pre_hooks)
            for part in model.modules()
        )
        and model.decoder.output.bias is None
        and len(model.encoder.blocks) > 0
        and all(map(_mixes_alike, (model.encoder, model.decoder)))
    )


def _mixes_alike(side) -> bool:
    """`mixes_alike` for a side, and without folding: it is called for every batch."""
    kinds = FreeMatrix, ToeplitzMatrix
    matrices = [part for part in side.modules() if isinstance(part, kinds)]
    return len({(type(matrix), matrix.weight.shape) for matrix in matrices}) == 1


class CompiledSearch(FoldedSearch):
    """Searches with a model as it is now, by torch's threads. It sees no later changes.

    Args:
        model: One that `can_compile`.
        source_dictionary, target_dictionary, unknown: As for `FoldedSearch`.
    """

    def __init__(
        self, model: ResMLPModel, source_dictionary, target_dictionary, unknown: bool = False
    ):
        described = describe_translator(model, False, shared := SharedWeights())
        arrays = shared.arrays | describe_mixing(model)
        super().__init__(described, arrays, source_dictionary, target_dictionary, unknown=unknown)

    def find(
        self, sources: Sentences, options: SearchOptions, guides: Guides = None
    ) -> list[list[Found]]:
        """As `FoldedSearch.find`."""
        longest = options.longest(max(map(len, sources)))
        options, search = replace(options, max_len_a=0.0, max_len_b=longest), super().find
        return _share(lambda texts, led: search(texts, options, led), sources, guides)

    def score(self, sources: Sentences, targets: Sentences) -> np.ndarray:
        """As `FoldedSearch.score`."""
        return np.array(_share(super().score, sources, targets))


def _share(work: Callable, sources: Sentences, others: list | None) -> list:
    """The results of work on sentences and their guides or targets, shared by torch's threads."""
    threads = min(torch.get_num_threads(), len(sources))
    parts = [(sources[i::threads], others and others[i::threads]) for i in range(threads)]
    if threads == 1:
        return work(*parts[0])
    found: list = [None] * len(sources)
    with ThreadPoolExecutor(threads) as pool:
        runs = [pool.submit(copy_context().run, work, *part) for part in parts]
        for i, run in enumerate(runs):
            found[i::threads] = run.result()
    return found


# The last search of each model, with values that identify the weights it was made of. The
# interface of torch.hub builds a generator for each call.
_SEARCHES: WeakKeyDictionary[nn.Module, tuple[list, CompiledSearch]] = WeakKeyDictionary()


class CompiledGenerator(SequenceGenerator):
    """fairseq's generator, in compiled code where that finds the same: for `fairseq-generate`.

    It finds the same with one model of ours, in a plain beam search. All other searches are
    fairseq's own.

    Args:
        source_dictionary: Of the sources. All other arguments are fairseq's.
    """

    def __init__(self, source_dictionary, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.source_dictionary = source_dictionary

    @torch.no_grad()
    def generate(self, models, sample: dict, **given) -> list[list[dict[str, Tensor]]]:
        """Translate a batch; arguments as fairseq's."""
        model, found = self.model.single_model, None
        drops = any(part.training for part in model.modules())  # for --retain-dropout too
        if self._is_plain(given) and not drops and can_compile(model):
            found = self._find(model, sample["net_input"]["src_tokens"])
        if found is None:
            return super().generate(models, sample, **given)
        return [[_describe(beam, self.eos) for beam in beams] for beams in found]

    def _is_plain(self, given: dict) -> bool:
        return (
            not any(value is not None for value in given.values())
            and self.model.models_size == 1
            and type(self.search) is BeamSearch
            and not self.search.stop_on_max_len
            and self.min_len == 1
            and self.temperature == 1
            and self.unk_penalty in (0, math.inf)
            and self.eos == self.tgt_dict.eos()
            and not self.match_source_len
            and self.repeat_ngram_blocker is None
            and self.token_indices_to_suppress is None
            and self.lm_model is None
        )

    def _find(self, model, tokens: Tensor) -> list[list[Found]] | None:
        """The beams of the compiled search; None where it leaves the batch to fairseq."""
        if model.decoder.need_attn:  # for --print-alignment
            return None
        # Beams that outnumber the symbols are filled in another order. Sources longer than those of
        # the training are for the model to take or to refuse.
        many = 2 * self.beam_size >= self.vocab_size
        if many or tokens.size(1) > model.encoder.longest:
            return None
        longest = int(self.max_len_a * tokens.size(1) + self.max_len_b)
        longest = min(longest, self.max_len - 1)
        lenpen = self.len_penalty if self.normalize_scores else 0.0
        try:
            options = SearchOptions(self.beam_size, lenpen=lenpen, max_len_b=longest)
        except ValueError:  # beyond the limits of our options
            return None
        pad = self.source_dictionary.pad()
        sources = [row[row != pad].numpy() for row in tokens]
        found = self._compile(model).find(sources, options)
        return found if all(found) else None

    def _compile(self, model) -> CompiledSearch:
        unknown = not self.unk_penalty
        made_of = [unknown, *_identify_weights(model)]
        if model not in _SEARCHES or _SEARCHES[model][0] != made_of:
            _SEARCHES.pop(model, None)  # its memory first
            search = CompiledSearch(model, self.source_dictionary, self.tgt_dict, unknown)
            _SEARCHES[model] = made_of, search
        return _SEARCHES[model][1]


def _identify_weights(model) -> list:
    """Values that change with the weights."""
    parameters = list(model.parameters())
    # Before it generates, fairseq gives a model a `train` that refuses. From then on weights are
    # replaced or loaded, which their places and versions tell. Optimizers go round the versions.
    if "train" in vars(model) and not any(p.is_inference() for p in parameters):
        return [(p.data_ptr(), p._version) for p in parameters]
    return [zlib.crc32(p.detach().contiguous().numpy()) for p in parameters]


def _describe(beam: Found, end: int) -> dict[str, Tensor]:
    """A hypothesis as fairseq's generator returns it."""
    return {
        "tokens": torch.tensor([*beam.tokens.tolist(), end]),
        "score": torch.tensor(beam.score),
        "attention": torch.empty(0),
        "alignment": torch.empty(0),
        "positional_scores": torch.from_numpy(beam.log_p),
    }
