"""Names that a model reads in the place of words whose translation is known beforehand."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

from resmlp_mt.text.punctuation import Place

_LETTERS, _DIGITS = "DGKLMPRSTX", "3456789"
ALPHABET = _LETTERS + _DIGITS
# Models copy such short names nearly always, and decline none of them.
_NAMES = [letter + digit for digit in _DIGITS for letter in _LETTERS]
# For numbers, with which other words agree.
_NUMBERS = [ten + one for one in _DIGITS for ten in _DIGITS[1:] if ten != one]
_NUMBER = re.compile(r"[0-9][0-9.,]*")
_WORD = re.compile(r"\S+")
# From this character on, in Unicode's last plane, all are private. Callers put one in the place of
# what they take out of a sentence, as a word: it stays, or is lost where the model loses its name.
FIRST_MARK = "\U00100000"


class Knowledge(Protocol):
    """What a model knows of characters."""

    def knows(self, character: str) -> bool:
        """Whether it ever saw a character."""

    def knows_script(self, letter: str) -> bool:
        """Whether it ever saw a letter of the same script."""


def find_unreadable(text: str, model: Knowledge) -> list[Place]:
    """The places of words that a model cannot read, without the marks around these.

    Such a word has a letter of a script that the model never saw, or it never saw more than half of
    its letters. Of one that begins with a capital it is any letter outside Latin-1, as in names
    like Škoda. Letters of Latin-1 are in words that a model may know, as Café, also where it has no
    subword for them.

    Args:
        text: Raw text.
        model: What it knows.
    """
    unknown = {letter for letter in set(_list_letters(text)) if not model.knows(letter)}
    if not unknown:
        return []
    foreign = {letter for letter in unknown if not model.knows_script(letter)}
    words = [_take_off_marks(word, model) for word in _WORD.finditer(text)]
    return [
        (start, end) for start, end in words if _is_unreadable(text[start:end], unknown, foreign)
    ]


def is_made_up(text: str, unreadable: Sequence[Place]) -> bool:
    """Whether a translation of a text would be made up: most of its words cannot be read.

    Args:
        text: Raw text.
        unreadable: What `find_unreadable` found in it.
    """
    rest = put_in(text, unreadable, repeat(""))
    return sum(any(map(str.isalpha, word)) for word in rest.split()) < len(unreadable)


def name_words(text: str, words: Iterable[str]) -> dict[str, str]:
    """A short name for each of these words, as far as there are any that the text has not."""
    # As subwords spell it: D3 of D₃ too, or all in lower case.
    spelled = unicodedata.normalize("NFKC", text).upper()
    names = (name for name in _NAMES if name not in spelled)
    numbers = (number for number in _NUMBERS if number not in spelled)
    named = {
        word: next(numbers if _NUMBER.fullmatch(word) else names, None)
        for word in dict.fromkeys(words)
    }
    return {word: name for word, name in named.items() if name}


def put_in(text: str, places: Iterable[Place], names: Iterable[str]) -> str:
    """A text with a name at each of these places, which are in order."""
    parts, done = [], 0
    for (start, end), name in zip(places, names, strict=False):
        parts += [text[done:start], name]
        done = end
    return "".join([*parts, text[done:]])


def put_names(text: str, names: Mapping[str, str]) -> str:
    """The beginning of a translation with the names in the place of their words."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return pattern.sub(lambda word: names[word[0]], text)


def put_back(translation: str, names: Mapping[str, str]) -> str:
    """A translation with the words themselves in the place of their names.

    >>> put_back("D3s Hund", {"東京": "D3"})
    '東京s Hund'
    """
    if not names:
        return translation
    words = {name: word for word, name in names.items()}
    return _match(words).sub(lambda name: words[name[0].upper()], translation)


def count_names(text: str, names: Mapping[str, str]) -> int:
    """How many names `put_back` finds in a text."""
    return len(_match(names.values()).findall(text)) if names else 0


def compare_names(translation: str, read: str, names: Mapping[str, str]) -> tuple[int, int]:
    """How many names a translation lacks of those in what was read, and how many it has too often.

    Of one that comes twice it may lack two.

    Args:
        translation: As the model said it.
        read: What it read.
        names: At least one.
    """
    find = _match(names.values()).findall
    said, wanted = (Counter(map(str.upper, find(text))) for text in (translation, read))
    return (wanted - said).total(), (said - wanted).total()


def _match(names: Iterable[str]) -> re.Pattern:
    # Within ASCII, since Chinese puts no blank around a name.
    return re.compile(rf"(?ai:(?<!\w)(?:{'|'.join(names)})(?!\d))")


def _is_unreadable(word: str, unknown: set[str], foreign: set[str]) -> bool:
    letters = _list_letters(word)
    lacking = [letter for letter in letters if letter in unknown]
    is_strange = max(lacking, default="") > "\xff"
    return (
        len(lacking) > len(letters) / 2
        or not foreign.isdisjoint(lacking)
        or (is_strange and letters[0].isupper())
    )


def _take_off_marks(word: re.Match, model: Knowledge) -> Place:
    """The place of a word without what stands before and behind it, as quotes and stops.

    Marks that the model never saw, as 《 and 」, stay with the word, and so do vowels of Hindi and
    Thai, which are marks for Unicode.
    """

    def is_of_it(character: str) -> bool:
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            return True
        return character > "\xff" and not model.knows(character)

    kept = [i for i, character in enumerate(word[0], word.start()) if is_of_it(character)]
    return (kept[0], kept[-1] + 1) if kept else word.span()


def _list_letters(text: str) -> list[str]:
    return list(filter(str.isalpha, unicodedata.normalize("NFC", text)))
