"""A folded translator as a model for fairseq's SequenceGenerator, for rarer searches.

The rows of the decoder are B sentences of M beams each, R = B M. Other shapes as in
`folded_search.py`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.kernels.decoder import DecoderKernel
from resmlp_mt.engines.kernels.encoder import EncoderKernel, KeysAndValues
from resmlp_mt.engines.kernels.step import StepKernel
from resmlp_mt.engines.search.beams import Beams

_PAST = "past"


@dataclass
class _Sources:
    """What the encoder left, which of the sentences are at work, (B,), and M."""

    kept: KeysAndValues
    at_work: np.ndarray
    beams: int = 1


@dataclass
class _Past:
    """What runs the steps, and the beams, with the places that they came through."""

    step: StepKernel
    beams: Beams
    order: np.ndarray | None = None  # of the beams for the next step


class ExportedEncoder(FairseqEncoder):
    """Source tokens, padded on the right -> keys and values.

    Args:
        kernel: What computes.
        dictionary: The source's.
        folder: What messages call the export.
    """

    def __init__(self, kernel: EncoderKernel, dictionary, folder: Path | str):
        super().__init__(dictionary)
        self.kernel, self.folder = kernel, folder

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> _Sources:
        """Encode the source. (B, S)."""
        tokens = src_tokens.numpy()
        with computing(self.folder):
            kept = self.kernel(tokens, tokens != self.dictionary.pad())
        return _Sources(kept, np.arange(len(tokens)))

    def reorder_encoder_out(self, encoder_out: _Sources, new_order: Tensor) -> _Sources:
        """Keep the sentences of these rows of the decoder. (R,)."""
        sentences, counts = np.unique(new_order.numpy() // encoder_out.beams, return_counts=True)
        return _Sources(encoder_out.kept, encoder_out.at_work[sentences], counts[0])

    def max_positions(self) -> int:
        """N of the encoder's A."""
        return self.kernel.positions


class ExportedDecoder(FairseqIncrementalDecoder):
    """The last tokens and the past -> log-probabilities of the next tokens.

    Args:
        kernel: What computes.
        dictionary: The target's.
        folder: What messages call the export.
    """

    def __init__(self, kernel: DecoderKernel, dictionary, folder: Path | str):
        super().__init__(dictionary)
        self.kernel, self.folder = kernel, folder

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: _Sources, incremental_state: dict
    ) -> tuple[Tensor, dict]:
        """Score the next tokens of every beam, of which the last ones are new.

        Args:
            prev_output_tokens: The target so far. (R, t + 1).
            encoder_out: What the encoder returned.
            incremental_state: Holds the past.

        Returns:
            Log-probabilities, (R, 1, V); and that there is no attention.
        """
        past = incremental_state.get(_PAST)
        if past is None:
            past = incremental_state[_PAST] = self._begin(encoder_out)
        step, beams = past.step, past.beams
        if past.order is not None:
            before = len(beams.at_work)
            beams.select(past.order, encoder_out.at_work)
            if len(beams.at_work) < before:
                step.bind(None)
            past.order = None
        shape = beams.tokens.shape
        beams.tokens[:] = prev_output_tokens[:, -1].numpy().reshape(shape)
        log_p = np.empty((*shape, len(self.dictionary)), np.float32)
        step.answer(log_p=log_p, forced=np.ones(shape[0], bool))
        with computing(self.folder):
            step.run(prev_output_tokens.size(1) - 1)
        return torch.from_numpy(log_p).flatten(0, 1)[:, None], {"attn": [None]}

    def _begin(self, sources: _Sources) -> _Past:
        kernel, sizes = self.kernel, (len(sources.at_work), int(sources.beams), 1)
        about = self.dictionary.eos(), kernel.layers, kernel.channels, kernel.positions
        beams = Beams(*sizes, *about, kernel.dtype)
        beams.scores[:] = 0  # fairseq adds up log-probabilities itself
        return _Past(StepKernel(kernel, sources.kept, beams), beams)

    def reorder_incremental_state_scripting(
        self, incremental_state: dict, new_order: Tensor
    ) -> None:
        """Select hypotheses for the next step. new_order: (R,) indices into the rows."""
        incremental_state[_PAST].order = new_order.numpy()

    def max_positions(self) -> int:
        """N of the decoder's A."""
        return self.kernel.positions


class ExportedModel(FairseqEncoderDecoderModel):
    """The kernels of a `FoldedSearch` as a model of fairseq's.

    Args:
        encoder, decoder: The kernels.
        dictionaries: Of source and target.
        folder: What messages call the export.
    """

    def __init__(
        self,
        encoder: EncoderKernel,
        decoder: DecoderKernel,
        dictionaries: tuple,
        folder: Path | str,
    ):
        super().__init__(
            ExportedEncoder(encoder, dictionaries[0], folder),
            ExportedDecoder(decoder, dictionaries[1], folder),
        )
