"""Words that a model cannot read, as those in another script, and what it reads in their place."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat

MOSTLY = 0.5  # of a text's characters unknown: a translation of it is made up
_LETTERS, _DIGITS = "DGKLMPRSTX", "3456789"
ALPHABET = _LETTERS + _DIGITS
# Models copy such short names nearly always, and decline none of them.
_NAMES = [letter + digit for digit in _DIGITS for letter in _LETTERS]
_WORD = re.compile(r"\S+")

Place = tuple[int, int]


def find_unreadable(text: str, knows: Callable[[str], bool]) -> list[Place]:
    """The places of words that a model cannot read, without the marks around these.

    Of such a word more than half of the letters are unknown. Of one that begins with a capital, any
    that is not of Latin-1, as in names like Škoda. Letters of Latin-1 are in words that a model may
    know, as Café, also where it has no subword for them.

    Args:
        text: Raw text.
        knows: Whether the model ever saw a letter.
    """
    unknown = {letter for letter in set(_list_letters(text)) if not knows(letter)}
    if not unknown:
        return []
    words = map(_take_off_marks, _WORD.finditer(text))
    return [(start, end) for start, end in words if _is_unreadable(text[start:end], unknown)]


def is_made_up(text: str, unreadable: Sequence[Place], knows: Callable[[str], bool]) -> bool:
    """Whether a translation of a text would be made up: too little of it can be read.

    Args:
        text: Raw text.
        unreadable: What `find_unreadable` found in it.
        knows: As there.
    """
    letters = _list_letters(text)
    unknown = sum(not knows(letter) for letter in letters)
    rest = put_in(text, unreadable, repeat(""))
    return unknown > MOSTLY * len(letters) or not _list_letters(rest)


def name_words(text: str, places: Iterable[Place]) -> dict[str, str]:
    """A short name for each word at these places, as far as there are any that the text has not."""
    words = dict.fromkeys(text[start:end] for start, end in places)
    raised = text.upper()  # subwords may be in lower case alone
    free = (name for name in _NAMES if name not in raised)
    return dict(zip(words, free, strict=False))


def put_in(text: str, places: Iterable[Place], names: Iterable[str]) -> str:
    """A text with a name at each of these places, which are in order."""
    parts, done = [], 0
    for (start, end), name in zip(places, names, strict=False):
        parts += [text[done:start], name]
        done = end
    return "".join([*parts, text[done:]])


def put_back(translation: str, names: Mapping[str, str]) -> str:
    """A translation with the words themselves in the place of their names.

    >>> put_back("D3s Hund", {"東京": "D3"})
    '東京s Hund'
    """
    if not names:
        return translation
    words = {name: word for word, name in names.items()}
    # Within ASCII, since Chinese puts no blank around a name.
    pattern = re.compile(rf"(?ai:(?<!\w)(?:{'|'.join(words)})(?!\d))")
    return pattern.sub(lambda name: words[name[0].upper()], translation)


def _is_unreadable(word: str, unknown: set[str]) -> bool:
    letters = _list_letters(word)
    lacking = [letter for letter in letters if letter in unknown]
    is_strange = max(lacking, default="") > "\xff"
    return len(lacking) > len(letters) / 2 or (is_strange and letters[0].isupper())


def _take_off_marks(word: re.Match) -> Place:
    """The place of a word without what stands before and behind it, as quotes and stops."""
    kept = [i for i, c in enumerate(word[0], word.start()) if c.isalnum() or _is_mark(c)]
    return (kept[0], kept[-1] + 1) if kept else word.span()


def _is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it, as vowels of Hindi and Thai do."""
    return unicodedata.category(character)[0] == "M"


def _list_letters(text: str) -> list[str]:
    return list(filter(str.isalpha, unicodedata.normalize("NFC", text)))
