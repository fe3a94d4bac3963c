"""Text to token indices and back."""

import re
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from resmlp_mt.data.sentences import wants_sentences
from resmlp_mt.data.subwords import find_subwords, load_subwords
from resmlp_mt.errors import UserError

_BYTE = re.compile("<0x([0-9A-F]{2})>")
# The largest that are known have 260,000. What fairseq makes of a line takes half a kilobyte.
_MAX_SYMBOLS, _MAX_BYTES = 2**20, 2**26


def check_dictionaries(folder: Path, *languages: str) -> None:
    """Refuse dictionaries that take much memory, before fairseq reads them.

    Raises:
        UserError: If one has more than a million lines, or 64 MB.
    """
    for path in (folder / f"dict.{lang}.txt" for lang in languages):
        if path.is_file() and _is_too_large(path):
            raise UserError(f"{path}: more than {_MAX_SYMBOLS:,} symbols; copy the file again")


def _is_too_large(path: Path) -> bool:
    if path.stat().st_size > _MAX_BYTES:
        return True
    data = path.read_bytes()
    return data.count(b"\n") + data.count(b"\r") > _MAX_SYMBOLS


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
        check_dictionaries(folder, source, target)
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

    def share_unknown(self, text: str) -> float:
        """Share of a source text's characters that have no subword; white space does not count.

        Those that SentencePiece spells in bytes have none either.
        """
        unknown = total = 0
        for piece in self.source_subwords.encode(text.strip(), out_type=str):
            byte = _BYTE.fullmatch(piece)
            # The bytes of a character after its first are 0x80 to 0xBF.
            size = int(byte[1], 16) & 0xC0 != 0x80 if byte else len(piece.replace("\u2581", ""))
            total += size
            if byte or self.source_dictionary.index(piece) == self.source_dictionary.unk():
                unknown += size
        return unknown / max(total, 1)

    def encode_target(self, text: str) -> np.ndarray:
        """Token indices of a text that a translation shall hold, without an end.

        Raises:
            UserError: If the model has no subword for a part of it.
        """
        pieces = self.target_subwords.encode(text, out_type=str)
        indices = [self.target_dictionary.index(piece) for piece in pieces]
        for piece, index in zip(pieces, indices, strict=True):
            if index == self.target_dictionary.unk():
                raise UserError(f"{text!r}: the model cannot say {piece.replace('▁', ' ')!r}")
        return np.array(indices, np.int64)

    def speaks_as(self, other: "TextCodec") -> bool:
        """Whether both have the same dictionaries and subwords, so that their models can join."""
        return all(
            getattr(self, f"{side}_dictionary") == getattr(other, f"{side}_dictionary")
            and getattr(self, f"{side}_subwords").serialized_model_proto()
            == getattr(other, f"{side}_subwords").serialized_model_proto()
            for side in ("source", "target")
        )

    def decode(self, tokens: np.ndarray) -> str:
        """The text of a translation's token indices."""
        return self.target_subwords.decode(self.name_target(tokens))

    def name_source(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a source's token indices."""
        return [self.source_dictionary[i] for i in tokens.tolist()]

    def name_target(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a translation's token indices."""
        return [self.target_dictionary[i] for i in tokens.tolist()]
