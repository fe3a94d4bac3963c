"""Text to token indices and back."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

import numpy as np

from resmlp_mt.data.card import Card, read_card
from resmlp_mt.data.subwords import find_subwords, load_subwords
from resmlp_mt.data.vocabulary import Vocabulary, check_dictionaries
from resmlp_mt.errors import UserError
from resmlp_mt.text.punctuation import UNSPACED

_BYTE = re.compile("<0x([0-9A-F]{2})>")
# SentencePiece's text for bytes that are no character, and one of two blanks around it.
_BLANK = "▁"  # SentencePiece's spelling
_BROKEN = re.compile("(?<= )\ufffd+ |\ufffd+")
_BROKEN_WORD = re.compile(r"(?<!\S)\ufffd+(?!\S)")
# SentencePiece's text for a subword that it does not know.
_UNKNOWN = "\u2047"
_UNSPACED = re.compile(rf"\s*[{UNSPACED}]")
# Of private use: no subword joins it with what follows, which so gets no blank before it.
_APART = "\ue000"


class TextCodec:
    """The dictionaries and SentencePiece models of source and target.

    A dictionary is a `Vocabulary`, or a `Dictionary` of fairseq.
    """

    def __init__(
        self,
        languages: tuple[str, str],
        subwords: tuple,
        dictionaries: tuple,
        card: Card,
    ):
        self.source_language, self.target_language = languages
        self.source_subwords, self.target_subwords = subwords
        self.source_dictionary, self.target_dictionary = dictionaries
        self.card = card

    @classmethod
    def from_folder(
        cls, folder: Path, languages: tuple[str, str], dictionaries: tuple | None = None
    ) -> "TextCodec":
        """Read what lies in a model's folder.

        Args:
            folder: Where spm.model, or spm.LANG.model, and dict.LANG.txt lie; and the card, if the
                model has one.
            languages: Of source and target.
            dictionaries: Theirs, if they were read before.

        Raises:
            UserError: If something is missing or broken.
        """
        paths = [find_subwords(folder, lang) for lang in languages]
        if None in paths:
            raise UserError(f"{folder}: no spm.model in this folder, nor spm.{languages[0]}.model")
        subwords = tuple(map(load_subwords, paths))
        if dictionaries is None:
            check_dictionaries(folder, *languages)
            dictionaries = tuple(Vocabulary(folder / f"dict.{lang}.txt") for lang in languages)
        return cls(languages, subwords, dictionaries, read_card(folder))

    def split(self, text: str) -> tuple[str, ...]:
        """The subwords of a source text, without white space around it."""
        return tuple(self.source_subwords.encode(text.strip(), out_type=str))

    def number_source_words(self, text: str) -> list[int]:
        """The word of each subword of a source text, counted from 0."""
        return _number_encoded(self.source_subwords, text)

    def encode(self, pieces: Iterable[str]) -> np.ndarray:
        """Token indices of a source's subwords, and the end."""
        indices = [self.source_dictionary.index(piece) for piece in pieces]
        return np.array([*indices, self.source_dictionary.eos()])

    def share_unknown(self, pieces: Iterable[str]) -> float:
        """Share of a source's characters that have no subword; white space does not count.

        Characters that SentencePiece spells in bytes have none either.
        """
        unknown = total = 0
        for piece in pieces:
            byte = _BYTE.fullmatch(piece)
            # The bytes of a character after its first are 0x80 to 0xBF.
            size = int(byte[1], 16) & 0xC0 != 0x80 if byte else len(piece.replace("\u2581", ""))
            total += size
            if byte or self.source_dictionary.index(piece) == self.source_dictionary.unk():
                unknown += size
        return unknown / max(total, 1)

    @cached_property
    def _source_letters(self) -> frozenset[str]:
        spelled = ("<0x", "madeupword")  # bytes, and what fairseq fills a dictionary with
        symbols = self.source_dictionary.symbols[len(Vocabulary.SPECIAL) :]
        return frozenset("".join(symbol for symbol in symbols if not symbol.startswith(spelled)))

    @cached_property
    def _source_scripts(self) -> frozenset[str]:
        return frozenset(map(_name_script, filter(str.isalpha, self._source_letters)))

    def knows(self, character: str) -> bool:
        """Whether a character is in any subword of the source, not spelled in bytes alone."""
        if character in self._source_letters:
            return True
        alike = self.source_subwords.normalize(character).strip(" \u2581")  # "ﬁ" is read as "fi"
        return bool(alike) and self._source_letters.issuperset(alike)

    def knows_script(self, letter: str) -> bool:
        """Whether any letter of a letter's script is in a subword of the source."""
        return _name_script(letter) in self._source_scripts

    def encode_translation(self, text: str) -> np.ndarray:
        """Token indices of a finished translation, without an end. Subwords may be unknown."""
        pieces = self.target_subwords.encode(text.strip(), out_type=str)
        return np.array([self.target_dictionary.index(piece) for piece in pieces], np.int64)

    def number_translation_words(self, text: str) -> list[int]:
        """The word of each subword of a finished translation, counted from 0."""
        return _number_encoded(self.target_subwords, text)

    def encode_target(self, text: str) -> np.ndarray:
        """Token indices of a text that a translation shall begin with, without an end.

        Raises:
            UserError: If the model has no subword for a part of it.
        """
        pieces = self.target_subwords.encode(text, out_type=str)
        indices = [self.target_dictionary.index(piece) for piece in pieces]
        for piece, index in zip(pieces, indices, strict=True):
            if index == self.target_dictionary.unk():
                said = shorten(piece.replace("▁", " "))
                raise UserError(f"{shorten(text)}: the model cannot say {said}")
        return np.array(indices, np.int64)

    def encode_held(self, text: str) -> np.ndarray:
        """Token indices of a text that a translation shall hold anywhere, without an end.

        The text begins a word, unless its first character is of a script without blanks between
        words: a blank before it would be wrong.

        Raises:
            UserError: If the model has no subword for a part of it, or writes it otherwise.
        """
        written = self.target_subwords.decode(self.target_subwords.encode(text))
        if _UNKNOWN not in written and written.split() != text.split():  # as TM for one letter
            raise UserError(f"{shorten(text)}: the model would write {shorten(written)}")
        if _UNSPACED.match(text):
            before = self.target_subwords.encode(_APART, out_type=str)
            pieces = self.target_subwords.encode(_APART + text.strip(), out_type=str)
            indices = [self.target_dictionary.index(piece) for piece in pieces[len(before) :]]
            if self.target_dictionary.unk() not in indices:
                return np.array(indices, np.int64)
        return self.encode_target(text)  # it may be known only with the blank

    def speaks_as(self, other: "TextCodec") -> bool:
        """Whether their models can join: the same languages, dictionaries and subwords."""
        languages = self.source_language, self.target_language
        return languages == (other.source_language, other.target_language) and all(
            getattr(self, f"{side}_dictionary").symbols
            == getattr(other, f"{side}_dictionary").symbols
            and getattr(self, f"{side}_subwords").serialized_model_proto()
            == getattr(other, f"{side}_subwords").serialized_model_proto()
            for side in ("source", "target")
        )

    def decode(self, tokens: np.ndarray) -> str:
        """The text of a translation's token indices, without bytes that are no character."""
        text = self.target_subwords.decode(self.name_target(tokens))
        return _BROKEN.sub("", text).strip() if "\ufffd" in text else text

    def number_target_words(self, tokens: np.ndarray) -> list[int]:
        """The word of each token in the text that `decode` makes of them, counted from 0."""
        found = self.target_subwords.decode(self.name_target(tokens), out_type="offset_mapping")
        # `decode` leaves out words that hold nothing else, and joins none.
        text = _BROKEN_WORD.sub(lambda word: " " * len(word[0]), found["text"])
        return _number_words(text, found)

    def name_source(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a source's token indices."""
        return [self.source_dictionary[i] for i in tokens.tolist()]

    def name_target(self, tokens: np.ndarray) -> list[str]:
        """The subwords of a translation's token indices."""
        return [self.target_dictionary[i] for i in tokens.tolist()]


def _name_script(letter: str) -> str:
    """LATIN, CYRILLIC, CJK ...: the first word of its name in Unicode."""
    return unicodedata.name(letter, "").split(" ")[0]


def _number_encoded(subwords: Any, text: str) -> list[int]:
    text = text.strip()
    return _number_words(text, subwords.encode(text, out_type="offset_mapping"))


def count_words(text: str, places: Iterable[int]) -> list[int]:
    """How many words of a text end before each place: the number of what stands there or next."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    return [bisect_right(ends, place) for place in places]


def _number_words(text: str, found: Mapping[str, list]) -> list[int]:
    """The word of each subword of a text, by its place there.

    SentencePiece has other blanks than the text: it makes one of a part of "´", and drops some
    characters, which then belong to a subword beside them. So the last letter of a subword counts.
    A blank alone is of the word behind it. `found` is SentencePiece's offset mapping.
    """
    places = [
        end if piece == _BLANK else start + max(len(text[start:end].rstrip()) - 1, 0)
        for piece, (start, end) in zip(found["pieces"], found["offsets"], strict=True)
    ]
    last = len(text.split()) - 1
    return [min(number, last) for number in count_words(text, places)] if last >= 0 else []
