"""The engine of models that have no compiled form: as fairseq loaded them, on any device."""

import threading

import numpy as np
import torch
import torch.nn.functional as F

from resmlp_mt.engines.search.engine import Sentences
from resmlp_mt.engines.search.generator import Generator, stack

_NOTHING = -100  # where a shorter translation of a batch has no token


class FairseqSearch(Generator):
    """Translates batches of token indices with a model that fairseq loaded.

    Args:
        model: The model.
        task: Its translation task, with the dictionaries.
        device: Where to translate: "cpu", "cuda", "cuda:1" ...
    """

    def __init__(self, model, task, device: str):
        symbols, pad = task.target_dictionary, task.source_dictionary.pad()
        super().__init__([model.to(device)], symbols, pad, device)
        self.model = model
        self.source_positions = model.encoder.max_positions()
        self._attending = threading.Lock()  # the decoder is told by an attribute, for all threads

    @torch.no_grad()
    def attend(self, source: np.ndarray, targets: Sentences) -> list[np.ndarray]:
        """As `Engine.attend`."""
        told = self._shift(targets)
        tokens = torch.from_numpy(np.tile(source, (len(targets), 1))).to(self.device)
        lengths = torch.full((len(targets),), len(source), device=self.device)
        encoded = self.model.encoder(tokens, src_lengths=lengths)
        with self._attending:
            self.model.decoder.need_attn = True
            try:
                _, extra = self.model.decoder(told, encoded)
            finally:
                self.model.decoder.need_attn = False
        weights = extra["attn"][0].float().cpu().numpy()
        return [rows[: len(t) + 1] for rows, t in zip(weights, targets, strict=True)]

    @torch.no_grad()
    def score(self, sources: Sentences, targets: Sentences) -> np.ndarray:
        """As `Engine.score`."""
        tokens, told = stack(sources, self.pad).to(self.device), self._shift(targets)
        lengths = torch.tensor(list(map(len, sources)), device=self.device)
        logits = self.model(tokens, lengths, told)[0].float()
        meant = [np.append(target, self.symbols.eos()) for target in targets]
        meant = stack(meant, _NOTHING).to(self.device)
        lost = F.cross_entropy(
            logits.transpose(1, 2), meant, ignore_index=_NOTHING, reduction="none"
        )
        return -lost.sum(1).cpu().numpy()

    def _shift(self, targets: list[np.ndarray]) -> torch.Tensor:
        """The decoder's input: the end, and the targets behind it. (B, T + 1)."""
        told = np.full((len(targets), 1 + max(map(len, targets))), self.symbols.eos())
        for row, target in zip(told, targets, strict=True):
            row[1 : len(target) + 1] = target
        return torch.from_numpy(told).to(self.device)
