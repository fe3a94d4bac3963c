"""Terms that must be translated in a given way."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter
from pathlib import Path
from reprlib import repr as shorten

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.text.punctuation import UNSPACED, may_cut
from resmlp_mt.text.rules.capitals import lower, upper
from resmlp_mt.text.segments import Place, Wanted
from resmlp_mt.text.sentences import base_language
from resmlp_mt.text.surrogates import mend_surrogates

_UNSPACED = re.compile(f"[{UNSPACED}]")
# Latin, Greek, Cyrillic and Armenian, with their stops: letters that need no look at each other.
_USUAL = re.compile("[\x20-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e]*")
_PARTS = re.compile(r"\w+|\W")


class Terms(dict[tuple[str, ...], Wanted]):
    """Terms in parts, as `_cut` makes them, each with the translation that is wanted."""

    def __init__(self, terms: Mapping[str, Wanted]):
        super().__init__((tuple(_cut(term)), wanted) for term, wanted in terms.items())
        # The lengths in parts of the terms that begin with a part, longest first.
        self.lengths: defaultdict[str, list[int]] = defaultdict(list)
        for first, length in sorted({(term[0], len(term)) for term in self}, reverse=True):
            self.lengths[first].append(length)

    def find(self, parts: Sequence[str], begin: int) -> tuple[int, Wanted | None]:
        """The end of the longest term that begins at a part of a text, and the wanted translation.

        Where there is no term, the end is the beginning.
        """
        for length in self.lengths.get(parts[begin], ()):
            term = tuple(parts[begin : begin + length])
            if term in self:
                return begin + len(term), self[term]
        return begin, None


class Glossary:
    """Finds terms in a source, and says what its translation must hold for them.

    A term in lower case is found in any case, one with a capital only as it is written, or in a
    text in capitals. It is found as whole words, but where it begins or ends with a character of a
    script that puts no blanks between words. The longer of two terms counts where both begin at the
    same place, and of two as long the one that is written as in the text. Letters with marks are
    the same composed and decomposed.

    Args:
        terms: {term: its translation}.
        codec: The model's.
        must: Whether a translation must hold all of them.

    Raises:
        UserError: If the model has no subwords for a translation, or one is empty.
        ValueError: If they are no terms and translations.
    """

    def __init__(self, terms: Mapping[str, str], codec: TextCodec, must: bool = True):
        if not isinstance(terms, Mapping):
            raise ValueError(
                f"glossary {shorten(terms)} must be a dict, such as {{'bike': 'Rad'}}, or the path "
                "of a file with a term, a tab and its translation in each line"
            )
        self._language = base_language(codec.source_language)
        known: dict[str, Wanted] = {}
        for term, translation in terms.items():
            if not isinstance(term, str) or not isinstance(translation, str):
                raise ValueError(f"glossary: {term!r} -> {translation!r}: a side is no text")
            translation = mend_surrogates(translation)
            try:
                wanted = codec.encode_held(translation)
            except UserError as error:
                raise UserError(f"glossary: {shorten(term)} -> {error}") from None
            if not term.strip() or not wanted.size:
                raise UserError(f"glossary: {term!r} -> {translation!r}: a side is empty")
            if (alike := _write_alike(term)) in known:
                raise UserError(f"glossary: {shorten(term)} stands there twice")
            known[alike] = Wanted(_join_blanks(translation), wanted, must)
        # Of two terms that are alike in capitals, the one with a capital counts.
        raised = sorted(known, key=str.islower, reverse=True)
        self._terms = Terms(known)
        self._raised = Terms({upper(term, self._language): known[term] for term in raised})
        self._joined = [self]

    def over(self, other: "Glossary") -> "Glossary":
        """These terms and those of another. For a term in both, the translation here counts."""
        joined = copy(self)
        joined._joined = [*self._joined, *other._joined]
        return joined

    def find(self, text: str, capitals: bool = False) -> list[tuple[Wanted, Place | None]]:
        """The translations wanted for the terms in a text, in their order, with their places.

        `capitals`: The text is in capitals, so that they do not tell words apart.

        A place is None if letters must be composed to find the terms.
        """
        found = list(self._find(_write_alike(text), capitals))
        if not found or not unicodedata.is_normalized("NFC", text):
            return [(wanted, None) for wanted, _ in found]
        # Where each character stands; of several blanks the first counts.
        kept = [i for i, c in enumerate(text) if not (c.isspace() and text[i - 1 : i].isspace())]
        kept = kept[text[:1].isspace() :]
        return [(wanted, (kept[start], kept[end - 1] + 1)) for wanted, (start, end) in found]

    def _find(self, text: str, capitals: bool) -> Iterator[tuple[Wanted, Place]]:
        written = _cut(text)
        lowered = [lower(part, self._language) for part in written]
        ways = [(each._terms, written) for each in self._joined]
        if capitals:
            ways += [(each._raised, written) for each in self._joined]
        if lowered != written:
            ways += [(each._terms, lowered) for each in self._joined]
        places, end = [0, *accumulate(map(len, written))], 0
        for begin in range(len(written)):
            if begin < end:
                continue
            # Of terms that are as long, the one that is written as in the text counts.
            found = (terms.find(parts, begin) for terms, parts in ways)
            end, wanted = max(found, key=itemgetter(0))
            if wanted is not None:
                yield wanted, (places[begin], places[end])


def read_glossary(path: Path) -> dict[str, str]:
    """Read a file with a term, a tab and its translation in each line.

    Raises:
        UserError: If a line is something else, or a term stands there twice; names the line.
    """
    lines: dict[str, int] = {}
    terms: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        term, *translations = [_join_blanks(column) for column in line.split("\t")]
        term = _write_alike(term)
        if not term or len(translations) != 1 or not translations[0]:
            raise UserError(f"{path}, line {number}: not a term, a tab and its translation")
        if term in terms:
            raise UserError(f"{path}, line {number}: {term!r} stands in line {lines[term]} too")
        lines[term], terms[term] = number, translations[0]
    return terms


def _join_blanks(text: str) -> str:
    return " ".join(text.split())


def _write_alike(text: str) -> str:
    """A text or a term in the form in which both are compared."""
    return unicodedata.normalize("NFC", _join_blanks(text))


def _cut(text: str) -> list[str]:
    """A text in parts: cut wherever it is within no word and no character."""
    if _USUAL.fullmatch(text):
        return _PARTS.findall(text)
    places = [i for i in range(1, len(text)) if _parts_words(text, i)]
    return [text[begin:end] for begin, end in pairwise([0, *places, len(text)])]


def _parts_words(text: str, place: int) -> bool:
    """Whether a place within a text is within no word and no character, as readers take them."""
    return not (_is_spaced(text[place - 1]) and _is_spaced(text[place])) and may_cut(text, place)


@lru_cache(2**12)
def _is_spaced(character: str) -> bool:
    """Whether a character is of a word with blanks around it. Vowel signs are, which are marks."""
    word = character == "_" or character.isalnum() or unicodedata.category(character)[0] == "M"
    return word and not _UNSPACED.match(character)
