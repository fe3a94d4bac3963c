"""A folded translator as a model for fairseq's SequenceGenerator, for rarer searches.

Each of the R rows of the decoder is a beam of a sentence. The beams of a sentence share its keys
and values. Other shapes as in `folded_search.py`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.kernels.decoder import DecoderKernel
from resmlp_mt.engines.kernels.encoder import EncoderKernel, KeysAndValues
from resmlp_mt.engines.kernels.steps import Steps


@dataclass(frozen=True)
class _Sources:
    """The encoder's output, and the sentence of each row, (R,)."""

    memory: KeysAndValues
    rows: np.ndarray


class _Side:
    """A side of the model.

    Args:
        kernel: Computes it.
        dictionary: The source's, or the target's.
        folder: The export's name in messages.
    """

    def __init__(self, kernel: EncoderKernel | DecoderKernel, dictionary, folder: Path | str):
        super().__init__(dictionary)
        self.kernel, self.folder = kernel, folder

    def max_positions(self) -> int:
        """N of the side's A."""
        return self.kernel.positions


class ExportedEncoder(_Side, FairseqEncoder):
    """Source tokens, padded on the right -> keys and values."""

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> _Sources:
        """Encode the source. (B, S)."""
        tokens = src_tokens.numpy()
        with computing(self.folder):
            memory = self.kernel(tokens, tokens != self.dictionary.pad())
        return _Sources(memory, np.arange(len(tokens)))

    def reorder_encoder_out(self, encoder_out: _Sources, new_order: Tensor) -> _Sources:
        """Take the sentences of these rows. (R,)."""
        return replace(encoder_out, rows=encoder_out.rows[new_order.numpy()])


class ExportedDecoder(_Side, FairseqIncrementalDecoder):
    """The last tokens and the past -> log-probabilities of the next tokens."""

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: _Sources, incremental_state: dict
    ) -> tuple[Tensor, dict]:
        """Score the next tokens of every beam, given its last one and the past.

        Args:
            prev_output_tokens: The target so far. (R, t + 1).
            encoder_out: From the encoder.
            incremental_state: Holds the past: "steps", and "order", which rows go on.

        Returns:
            Log-probabilities, (R, 1, V); and that there is no attention.
        """
        rows, past = prev_output_tokens.size(0), incremental_state
        if "steps" not in past:
            sizes = 1, 1, self.kernel.positions  # a beam, whose continuations fairseq looks for
            past["steps"] = Steps(self.kernel, encoder_out.memory, *sizes, at_work=encoder_out.rows)
        if (order := past.pop("order", None)) is not None:
            past["steps"].select(order, encoder_out.rows)
        steps = past["steps"]
        steps.tokens[:, 0] = prev_output_tokens[:, -1].numpy()
        steps.scores[:] = 0  # fairseq adds up log-probabilities itself
        log_p = np.empty((rows, 1, len(self.dictionary)), np.float32)
        steps.answer(log_p=log_p, forced=np.ones(rows, bool))
        with computing(self.folder):
            steps.run()
        return torch.from_numpy(log_p), {"attn": [None]}

    def reorder_incremental_state_scripting(
        self, incremental_state: dict, new_order: Tensor
    ) -> None:
        """Select hypotheses for the next step. new_order: (R,) indices into the rows."""
        incremental_state["order"] = new_order.numpy()


class ExportedModel(FairseqEncoderDecoderModel):
    """The kernels of a `FoldedSearch` as a model of fairseq's.

    Args:
        encoder, decoder: The kernels.
        dictionaries: Of source and target.
        folder: The export's name in messages.
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
