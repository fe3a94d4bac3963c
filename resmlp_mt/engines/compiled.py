"""Checkpoints in the compiled search: what an exported model runs in, made in memory."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

import numpy as np
import torch

from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.kernels.library import find_kind
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.beams import Found
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.translation import ResMLPModel
from resmlp_mt.models.translation.folded import (
    FOLDED,
    describe_decoder,
    describe_encoder,
    describe_mixing,
)
from resmlp_mt.nn.mixers import (
    FreeMatrix,
    GatedMixer,
    LinearMixer,
    ProjectedMixer,
    ToeplitzMatrix,
)

# What the compiled code knows. A part that somebody exchanged or hooked may do other things.
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
    """As `mixes_alike`, of a side and without folding: it is asked for every batch."""
    kinds = FreeMatrix, ToeplitzMatrix
    matrices = [part for part in side.modules() if isinstance(part, kinds)]
    return len({(type(matrix), matrix.weight.shape) for matrix in matrices}) == 1


class CompiledSearch:
    """A plain beam search with a model as it is now. It sees no later changes: make another then.

    Args:
        model: One that `can_compile`.
        source_dictionary, target_dictionary: A `Dictionary` of fairseq each.
        banned: Symbols that no translation has.
    """

    def __init__(self, model: ResMLPModel, source_dictionary, target_dictionary, banned: list[int]):
        encoder, decoder, shared = model.encoder, model.decoder, SharedWeights()
        described = {
            "decoder": describe_decoder(decoder, False, shared),
            "encoder": describe_encoder(encoder, decoder, False, shared),
            "source_positions": encoder.longest,
            "target_positions": decoder.longest,
        }
        arrays = shared.arrays | describe_mixing(model)
        dictionaries = source_dictionary, target_dictionary
        self._engine = FoldedSearch.from_description(described, arrays, *dictionaries, banned)

    def find(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[Found]]:
        """Translate a batch; arguments as for `FoldedSearch.find`.

        torch's threads share the sentences.
        """
        longest = options.longest(max(map(len, sources)))
        options = replace(options, max_len_a=0.0, max_len_b=longest)
        threads = min(torch.get_num_threads(), len(sources))
        parts = [
            (sources[i::threads], options, guides and guides[i::threads]) for i in range(threads)
        ]
        if threads == 1:
            return self._engine.find(*parts[0])
        found: list = [None] * len(sources)
        with ThreadPoolExecutor(threads) as pool:
            runs = [pool.submit(copy_context().run, self._engine.find, *part) for part in parts]
            for i, run in enumerate(runs):
                found[i::threads] = run.result()
        return found
