"""Terms that must be translated in a given way."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as shorten

import numpy as np

from resmlp_mt.data.sentences import parts_sentences_by_blanks
from resmlp_mt.data.text import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.inference.codec import TextCodec

_WORD, _CHARACTER = re.compile(r"\w+|[^\w\s]"), re.compile(r"\S")


class Glossary:
    """Finds terms in a source, and says what its translation must hold for them.

    A term in lower case is found in any case, one with a capital only as it is written, or in a
    text in capitals. It is found as whole words, but for languages that put no blanks between
    words. The longer of two terms counts where both begin at the same place.

    Args:
        terms: {term: its translation}.
        codec: The model's.

    Raises:
        UserError: If the model has no subwords for a translation, or one is empty.
        ValueError: If they are no terms and translations.
    """

    def __init__(self, terms: Mapping[str, str], codec: TextCodec):
        if not isinstance(terms, Mapping):
            raise ValueError(
                f"glossary {shorten(terms)} must be a dict, such as {{'bike': 'Rad'}}, or the path "
                "of a file with a term, a tab and its translation in each line"
            )
        self._has_words = parts_sentences_by_blanks(codec.source_language)
        self._start = _WORD if self._has_words else _CHARACTER
        self._terms: dict[str, list[tuple[str, np.ndarray]]] = {}
        for term, translation in terms.items():
            if not isinstance(term, str) or not isinstance(translation, str):
                raise ValueError(f"glossary: {term!r} -> {translation!r}: a side is no text")
            term, wanted = _join_blanks(term), codec.encode_target(translation)
            start = self._start.match(term)
            if start is None or not wanted.size:
                raise UserError(f"glossary: {term!r} -> {translation!r}: a side is empty")
            self._terms.setdefault(start[0].lower(), []).append((term, wanted))
        for alike in self._terms.values():
            # Of those that fit in the same place the longest; before others as it is written.
            alike.sort(key=lambda pair: (-len(pair[0]), pair[0].islower()))

    def find(self, text: str, capitals: bool = False) -> tuple[np.ndarray, ...]:
        """Token indices of the translations of the terms in a text, each once.

        Args:
            text: Of the source.
            capitals: Whether it is in capitals, so that they do not tell words apart.
        """
        text, end, found = _join_blanks(text), 0, {}
        for start in self._start.finditer(text):
            if start.start() < end:
                continue
            for term, wanted in self._terms.get(start[0].lower(), ()):
                stop = start.start() + len(term)
                piece = text[start.start() : stop]
                written = (piece, piece.lower())
                alike = term in written or (capitals and term.upper() == piece)
                if alike and self._may_end(text, stop):
                    found[wanted.tobytes()], end = wanted, stop
                    break
        return tuple(found.values())

    def _may_end(self, text: str, place: int) -> bool:
        """Whether a term that ends there does not end within a word."""
        return not self._has_words or not re.fullmatch(r"\w\w", text[place - 1 : place + 1])


def read_glossary(path: Path) -> dict[str, str]:
    """Read a file with a term, a tab and its translation in each line.

    Raises:
        UserError: If a line is something else, or a term stands there twice; names the line.
    """
    return dict(_read_terms(path))


def _read_terms(path: Path) -> Iterable[tuple[str, str]]:
    known: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        columns = [_join_blanks(column) for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise UserError(f"{path}, line {number}: not a term, a tab and its translation")
        if columns[0] in known:
            raise UserError(
                f"{path}, line {number}: {columns[0]!r} stands in line {known[columns[0]]} too"
            )
        known[columns[0]] = number
        yield columns[0], columns[1]


def _join_blanks(text: str) -> str:
    return " ".join(text.split())
