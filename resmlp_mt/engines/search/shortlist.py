"""Choosing among few symbols of the target: those that may translate what is in the sources."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


class Shortlist:
    """The symbols that the translation of a sentence may have, by the subwords of its source.

    Args:
        arrays: "always", those of every sentence; and "symbols", those of all subwords one after
            the other, of which subword i has those from "starts"[i] to "starts"[i + 1].
        select: Symbols, (K,), to the product with their rows of the output layer.
        source_dictionary, target_dictionary: A `Vocabulary` each, with the same end of a sentence.

    Raises:
        ValueError: If the arrays do not fit.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        select: Callable[[np.ndarray], Any],
        source_dictionary,
        target_dictionary,
    ):
        names = "always", "starts", "symbols"
        self.always, self.starts, self.symbols = (arrays[name] for name in names)
        self.select, self.target_symbols = select, len(target_dictionary)
        self.end = target_dictionary.eos()
        self._check(len(source_dictionary))
        self.known = np.diff(self.starts) > 0
        self.known[[self.end, target_dictionary.unk()]] = True  # these have no translations

    def _check(self, source_symbols: int) -> None:
        for name in ("always", "starts", "symbols"):
            array = getattr(self, name)
            if array.dtype != np.int32 or array.ndim != 1:
                raise ValueError(f"{name} {array.shape} in {array.dtype}")
        if len(self.starts) != source_symbols + 1 or (np.diff(self.starts) < 0).any():
            raise ValueError(f"a shortlist of {len(self.starts) - 1} subwords")
        if self.starts[0] != 0 or self.starts[-1] != len(self.symbols):
            raise ValueError("a shortlist that breaks off")
        for symbols in (self.always, self.symbols):
            if len(symbols) and not 0 <= symbols.min() <= symbols.max() < self.target_symbols:
                raise ValueError("a shortlist of other symbols than the dictionary's")

    def knows(self, source: np.ndarray) -> bool:
        """Whether the shortlist has translations of every subword of a source. (S,)."""
        return self.known[source].all()

    def choose(self, sources: list[np.ndarray], prefixes: list[np.ndarray]) -> "Choice":
        """The symbols that the translations of a batch choose from.

        Args:
            sources: Each (S,).
            prefixes: The beginnings of translations, each (P,); of every sentence, or none.
        """
        allowed = np.zeros((len(sources), self.target_symbols), bool)
        allowed[:, self.always] = True
        for i, (row, source) in enumerate(zip(allowed, sources, strict=True)):
            for word in source.tolist():
                row[self.symbols[self.starts[word] : self.starts[word + 1]]] = True
            if prefixes:
                row[prefixes[i]] = True
        allowed[:, self.end] = False
        candidates = np.append(self.end, np.flatnonzero(allowed.any(0)))
        allowed[:, self.end] = True
        barred = np.where(allowed[:, None, candidates], np.float32(0), -np.float32(np.inf))
        return Choice(candidates, barred, self.select(candidates))


@dataclass(frozen=True)
class Choice:
    """The symbols that a batch chooses from.

    Attributes:
        candidates: The symbols, the end of a sentence first. (K,).
        barred: Added to their logits: 0, or -inf for those of other sentences alone. (B, 1, K).
        output: The product that makes their logits: a `PackedProduct`.
    """

    candidates: np.ndarray
    barred: np.ndarray
    output: Any

    def keep(self, sentences: np.ndarray) -> "Choice":
        """The same for some of the sentences. (B,) of bool."""
        return replace(self, barred=self.barred[sentences])
