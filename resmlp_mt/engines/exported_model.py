"""An export as a model for fairseq's SequenceGenerator, for what the fast search cannot do.

The rows of the decoder are B sentences of M beams each, R = B M. Other shapes as in
`translation_graphs.py`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.onnx.memory import GraphMemory

_PAST = "past"


@dataclass
class _Memory:
    """What the encoder left, and M."""

    kept: GraphMemory
    beams: int = 1


@dataclass
class _Past:
    """What the steps left: (n, D C), and the rows of it that each beam comes from: (t, R)."""

    history: np.ndarray
    places: np.ndarray


class ExportedEncoder(FairseqEncoder):
    """Source tokens, padded on the right -> memory.

    Args:
        backend: What a `FoldedSearch` computes with.
        dictionary: The source's.
        positions: N of the encoder's A.
        folder: What messages call the export.
    """

    def __init__(self, backend, dictionary, positions: int, folder: Path | str):
        super().__init__(dictionary)
        self.backend, self.positions, self.folder = backend, positions, folder

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> _Memory:
        """Encode the source. (B, S)."""
        tokens = src_tokens.numpy()
        with computing(self.folder):
            return _Memory(self.backend.encode(tokens, tokens != self.dictionary.pad()))

    def reorder_encoder_out(self, encoder_out: _Memory, new_order: Tensor) -> _Memory:
        """Keep the sentences of these rows of the decoder. (R,)."""
        sentences, counts = np.unique(new_order.numpy() // encoder_out.beams, return_counts=True)
        kept = encoder_out.kept
        if len(sentences) < len(kept.mask):
            kept = kept.keep(sentences)
        return _Memory(kept, counts[0])

    def max_positions(self) -> int:
        """N of the encoder's A."""
        return self.positions


class ExportedDecoder(FairseqIncrementalDecoder):
    """The last tokens and the past -> log-probabilities of the next tokens.

    Args:
        backend, folder: As for `ExportedEncoder`.
        dictionary: The target's.
        positions: N of the decoder's A.
    """

    def __init__(self, backend, dictionary, positions: int, folder: Path | str):
        super().__init__(dictionary)
        self.backend, self.positions, self.folder = backend, positions, folder

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
            left = np.empty((0, len(self.backend.rows.scale)), np.float32)
            past = _Past(left, np.empty((0, rows), np.int64))
        shape = rows // encoder_out.beams, encoder_out.beams
        with computing(self.folder):
            log_p, values = self.backend.step_log_p(
                prev_output_tokens[:, -1].numpy().reshape(shape),
                past.history,
                past.places.reshape(length - 1, *shape),
                encoder_out.kept,
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
        return self.positions


class ExportedModel(FairseqEncoderDecoderModel):
    """What a `FoldedSearch` computes with as a model of fairseq's.

    Args:
        backend, folder: As for `ExportedEncoder`.
        dictionaries, positions: Of source and target.
    """

    def __init__(
        self, backend, dictionaries: tuple, positions: tuple[int, int], folder: Path | str
    ):
        source, target = zip(dictionaries, positions, strict=True)
        encoder = ExportedEncoder(backend, *source, folder)
        super().__init__(encoder, ExportedDecoder(backend, *target, folder))
