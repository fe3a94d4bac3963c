"""Text to token indices and back."""

from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from resmlp_mt.data.sentences import wants_sentences
from resmlp_mt.data.subwords import find_subwords, load_subwords
from resmlp_mt.errors import UserError


class TextCodec:
    """The dictionaries and SentencePiece models of a translation model.

    Args:
        folder: Where dict.LANG.txt and spm.model, or spm.LANG.model, lie; and what says whether the
            model wants single sentences.
        source, target: The languages.

    Raises:
        UserError: If one of them is missing or broken.
    """

    def __init__(self, folder: Path, source: str, target: str):
        paths = [find_subwords(folder, lang) for lang in (source, target)]
        if None in paths:
            raise UserError(f"{folder}: no spm.model in this folder, nor spm.{source}.model")
        self.source_subwords, self.target_subwords = map(load_subwords, paths)
        self.source_dictionary = Dictionary.load(str(folder / f"dict.{source}.txt"))
        self.target_dictionary = Dictionary.load(str(folder / f"dict.{target}.txt"))
        self.source_language, self.target_language = source, target
        self.wants_sentences = wants_sentences(folder)

    def count(self, text: str) -> int:
        """Subwords of a source text, without white space around it."""
        return len(self.source_subwords.encode(text.strip()))

    def encode(self, text: str, longest: int) -> np.ndarray:
        """Token indices of a source text, cut after `longest` subwords, and the end."""
        pieces = self.source_subwords.encode(text.strip(), out_type=str)[:longest]
        indices = [self.source_dictionary.index(piece) for piece in pieces]
        return np.array([*indices, self.source_dictionary.eos()])

    def decode(self, tokens: np.ndarray) -> str:
        """The text of a translation's token indices."""
        return self.target_subwords.decode(self.name_target(tokens))

    def name_source(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a source's token indices."""
        return [self.source_dictionary[i] for i in tokens.tolist()]

    def name_target(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a translation's token indices."""
        return [self.target_dictionary[i] for i in tokens.tolist()]
