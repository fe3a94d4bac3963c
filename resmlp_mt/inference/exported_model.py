"""Exported graphs as a model for fairseq's SequenceGenerator, for what the fast search cannot do.

The rows of the decoder are B sentences of M beams each, R = B M. Other shapes as in
`translation_graphs.py`.
"""

from dataclasses import dataclass

import numpy as np
import onnxruntime
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

_PAST = "past"


@dataclass
class _Memory:
    """What the encoder left, (2 D, B, E, S, C / E) and (B, 1, 1, S), and M."""

    values: np.ndarray
    mask: np.ndarray
    beams: int = 1


@dataclass
class _Past:
    """What the steps left: (n, D C), and the rows of it that each beam comes from: (t, R)."""

    history: np.ndarray
    places: np.ndarray


class ExportedEncoder(FairseqEncoder):
    """Source tokens, padded on the right -> memory.

    Args:
        engine: The `FoldedSearch` whose graphs run.
    """

    def __init__(self, engine):
        super().__init__(engine.source_dictionary)
        self.engine = engine

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> _Memory:
        """Encode the source. (B, S)."""
        return _Memory(*self.engine.encode(src_tokens.numpy()))

    def reorder_encoder_out(self, encoder_out: _Memory, new_order: Tensor) -> _Memory:
        """Keep the sentences of these rows of the decoder. (R,)."""
        kept, counts = np.unique(new_order.numpy() // encoder_out.beams, return_counts=True)
        values, mask = encoder_out.values, encoder_out.mask
        if len(kept) < len(mask):
            values, mask = values[:, kept], mask[kept]
        return _Memory(values, mask, counts[0])

    def max_positions(self) -> int:
        """N of the encoder's A."""
        return self.engine.source_positions


class ExportedDecoder(FairseqIncrementalDecoder):
    """The last tokens and the past -> log-probabilities of the next tokens.

    Args:
        engine: The `FoldedSearch` whose graphs run.
    """

    def __init__(self, engine):
        super().__init__(engine.target_dictionary)
        self.engine = engine
        self.run_options = onnxruntime.RunOptions()
        # Without this the graph sorts the candidates too.
        self.run_options.only_execute_path_to_fetches = True

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: _Memory, incremental_state: dict
    ) -> tuple[Tensor, dict]:
        """Score the next tokens of every beam, of which the last ones are new.

        Args:
            prev_output_tokens: The target so far. (R, t + 1).
            encoder_out: What the encoder returned.
            incremental_state: Holds the past.

        Returns:
            Log-probabilities, (R, 1, V); and that there is no attention.
        """
        rows, length = prev_output_tokens.shape
        past = incremental_state.setdefault(_PAST, None)
        if past is None:
            channels = self.engine.weights["decoder.scale"].size
            past = _Past(np.empty((0, channels), np.float32), np.empty((0, rows), np.int64))
        shape = rows // encoder_out.beams, encoder_out.beams
        log_p, values = self.engine.step_log_p(
            prev_output_tokens[:, -1].numpy().reshape(shape),
            past.history,
            past.places.reshape(length - 1, *shape),
            encoder_out.values,
            encoder_out.mask,
            self.run_options,
        )
        new = np.arange(len(past.history), len(past.history) + rows)
        incremental_state[_PAST] = _Past(
            np.concatenate([past.history, values.reshape(rows, -1)]),
            np.concatenate([past.places, new[None]]),
        )
        return torch.from_numpy(log_p.reshape(rows, 1, -1)), {"attn": [None]}

    def reorder_incremental_state_scripting(
        self, incremental_state: dict, new_order: Tensor
    ) -> None:
        """Select hypotheses, in place. new_order: (R,) indices into the rows."""
        past = incremental_state[_PAST]
        past.places = past.places[:, new_order.numpy()]

    def max_positions(self) -> int:
        """N of the decoder's A."""
        return self.engine.target_positions


class ExportedModel(FairseqEncoderDecoderModel):
    """The graphs of a `FoldedSearch` as a model of fairseq's."""

    def __init__(self, engine):
        super().__init__(ExportedEncoder(engine), ExportedDecoder(engine))
