"""Sampling that depends on the seed and the sentence, not on the rest of the batch."""

import numpy as np
import torch
from fairseq.search import Search
from torch import Tensor

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions


class SeededSampling(Search):
    """Draws the next subword of every sample; a search strategy of fairseq's SequenceGenerator.

    fairseq's own draws for a whole batch from torch's generator, so that other sentences in it
    change what is drawn. Here every sentence has a generator.

    Args:
        symbols: The target's dictionary.
        options: Among which subwords to draw.
        guides: Of the sentences. The `id` of a sentence in the sample is its place here.
    """

    def __init__(self, symbols, options: SearchOptions, guides: list[Guide]):
        super().__init__(symbols)
        self.options = options
        self.generators = [np.random.default_rng([options.seed, *g.number]) for g in guides]

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw a subword for each sample, of which each sentence has M.

        Args:
            step: Subwords drawn before.
            lprobs: Log-probabilities of the next. (B, M, V).
            scores: Of the samples after each step so far. (B, M, step).
            prev_output_tokens: Not needed; fairseq passes it.
            original_batch_idxs: Which sentence each row is. (B,).

        Returns:
            The scores of the samples now, the subwords, and the samples that they go on from:
            (B, M) each.
        """
        samples = lprobs.size(1)
        # Rounding, which differs between batches and engines, should seldom change what is drawn.
        exact = torch.float32 if lprobs.device.type == "mps" else torch.float64
        probs = (lprobs - lprobs.amax(-1, keepdim=True)).to(exact).exp()
        sums = self._leave_out(probs).cumsum(-1)
        drawn = [self.generators[i].random(samples) for i in original_batch_idxs.tolist()]
        drawn = torch.from_numpy(np.stack(drawn)).to(sums)[..., None]
        # The first whose sum is above the number drawn: never one of probability 0.
        tokens = torch.searchsorted(sums, drawn * sums[..., -1:], right=True)
        tokens = tokens.clamp(max=(sums < sums[..., -1:]).sum(-1, keepdim=True))
        found = lprobs.gather(-1, tokens)[..., 0]
        if step > 0:
            found = found + scores[:, :, step - 1]
        own = torch.arange(samples, device=lprobs.device).expand(len(lprobs), samples)
        return found, tokens[..., 0], own.clone()

    def _leave_out(self, probs: Tensor) -> Tensor:
        """The probabilities, zero where top-k or top-p leave a subword out. (B, M, V)."""
        topk, topp = self.options.sampling_topk, self.options.sampling_topp
        if topk is not None:
            best = probs.topk(min(topk, probs.size(-1)))
        elif topp is not None:
            best = probs.sort(descending=True)
            before = best.values.cumsum(-1) - best.values
            best.values[before >= topp * best.values.sum(-1, keepdim=True)] = 0
        else:
            return probs
        return torch.zeros_like(probs).scatter(-1, best.indices, best.values)
