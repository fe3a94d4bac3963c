"""Searches of fairseq, where its own fail."""

from functools import partial
from weakref import proxy

import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import DiverseBeamSearch, LexicallyConstrainedBeamSearch
from fairseq.token_generation_constraints import pack_constraints, unpack_constraints
from torch import Tensor

from resmlp_mt.errors import UserError


class DiverseBeams(DiverseBeamSearch):
    """--diverse-beam-groups beyond the first batch.

    fairseq indexes the overlap of the groups, which has a row for each sentence of a batch, with
    the sentences' numbers in the data set.
    """

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
    ):
        """Choose the next tokens; arguments as fairseq's."""
        if step == 0:
            self.sentences = original_batch_idxs
        # Finished sentences leave the batch; the rows of the overlap stay.
        places = (original_batch_idxs[:, None] == self.sentences).int().argmax(1)
        return super().step(step, lprobs, scores, prev_output_tokens, places)


class ConstrainedBeams(LexicallyConstrainedBeamSearch):
    """--constraints that end in no traceback: without words, or with empty ones."""

    def init_constraints(self, batch_constraints: Tensor | None, beam_size: int) -> None:
        """Begin a batch; arguments as fairseq's.

        Raises:
            UserError: If the data holds no words.
        """
        if batch_constraints is None:
            raise UserError(
                "--constraints: binarized data holds no words to constrain a translation to; give "
                "them after tabs in the lines for 'resmlp-mt translate' or 'resmlp-mt interactive'"
            )
        words = [[w for w in unpack_constraints(row) if len(w)] for row in batch_constraints]
        super().init_constraints(pack_constraints(words), beam_size)


class NoRepeats(NGramRepeatBlock):
    """--no-repeat-ngram-size without fairseq's CUDA extension.

    fairseq looks for the end of a hypothesis at the end of its row, where the padding is, and so
    never finds a repeat.
    """

    def __init__(self, no_repeat_ngram_size: int, **options):
        if no_repeat_ngram_size == 1:  # which fairseq takes for none at all
            raise UserError("--no-repeat-ngram-size must be at least 2: no word could come twice")
        super().__init__(no_repeat_ngram_size, **options)

    def _no_repeat_ngram(self, tokens, lprobs, bsz: int, beam_size: int, step: int) -> Tensor:
        return super()._no_repeat_ngram(tokens[:, : step + 1], lprobs, bsz, beam_size, step)


def force_prefixes(
    generator: torch.nn.Module, step: int, lprobs, scores, tokens, prefix_tokens, beam_size: int
):
    """Force prefixes, and keep sentences without one from ending at once.

    fairseq lets them, where others of their batch have a prefix; arguments as fairseq's.
    """
    forced = generator.__class__._prefix_tokens(
        generator, step, lprobs, scores, tokens, prefix_tokens, beam_size
    )
    if step < generator.min_len:
        free = prefix_tokens[:, step].eq(generator.pad).repeat_interleave(beam_size)
        lprobs[free, generator.eos] = -torch.inf
    return forced


def mend_generator(generator: torch.nn.Module) -> torch.nn.Module:
    """Put these searches in the place of fairseq's in one of its generators."""
    search = getattr(generator, "search", None)
    if type(search) is DiverseBeamSearch:
        words = generator.tgt_dict
        generator.search = DiverseBeams(words, search.num_groups, -search.diversity_strength)
    elif type(search) is LexicallyConstrainedBeamSearch:
        generator.search = ConstrainedBeams(generator.tgt_dict, search.representation)
    if hasattr(generator, "_prefix_tokens"):
        generator._prefix_tokens = partial(force_prefixes, proxy(generator))
    block = getattr(generator, "repeat_ngram_blocker", None)
    if block is not None:
        generator.repeat_ngram_blocker = NoRepeats(block.no_repeat_ngram_size)
    return generator
