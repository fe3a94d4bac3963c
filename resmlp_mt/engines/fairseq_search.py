"""The engine of checkpoints: models that fairseq loaded, on any device."""

import threading

import numpy as np
import torch
import torch.nn.functional as F

from resmlp_mt.engines.compiled import CompiledSearch, can_compile
from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.generator import Generator, stack

_NOTHING = -100  # where a shorter translation of a batch has no token


class FairseqSearch(Generator):
    """Translates batches of token indices with a model that fairseq loaded.

    Args:
        model: The model.
        task: Its translation task, with the dictionaries.
        device: Where to translate: "cpu", "cuda", "cuda:1" ...

    Attributes:
        compiled: What does plain searches, after `compile`; None for fairseq's own.
    """

    def __init__(self, model, task, device: str):
        symbols, pad = task.target_dictionary, task.source_dictionary.pad()
        super().__init__([model.to(device)], symbols, pad, device)
        self.model = model
        self.source_positions = model.encoder.max_positions()
        self.compiled: CompiledSearch | None = None
        self._attending = threading.Lock()  # the decoder is told by an attribute, for all threads

    def compile(self) -> None:
        """Do plain searches in compiled code, where it takes the model, with its weights of now."""
        self.compiled = None
        if can_compile(self.model):
            symbols = self.symbols
            banned = [symbols.pad(), symbols.unk()]
            self.compiled = CompiledSearch(
                self.model, self.model.encoder.dictionary, symbols, banned
            )

    def search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[tuple[np.ndarray, float]]]:
        """As `Engine.search`."""
        # Longer sources than it was trained for a model takes or refuses by itself.
        fit = max(map(len, sources)) <= self.source_positions
        if self.compiled and options.is_plain and fit:
            found = self.compiled.find(sources, options, guides)
            return [[(beam.tokens, beam.score) for beam in beams] for beams in found]
        return super().search(sources, options, guides)

    @torch.no_grad()
    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
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
    def score(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
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
        """What the decoder is told: the end, and the targets behind it. (B, T + 1)."""
        told = np.full((len(targets), 1 + max(map(len, targets))), self.symbols.eos())
        for row, target in zip(told, targets, strict=True):
            row[1 : len(target) + 1] = target
        return torch.from_numpy(told).to(self.device)
