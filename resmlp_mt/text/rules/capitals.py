"""Sentences in capitals, which models know less well: read in lower case, answered in capitals."""

import re
from collections.abc import Callable

from resmlp_mt.text.segments import About, Traced
from resmlp_mt.text.sentences import base_language, split_sentences

# Words that stay as they are typed: addresses, abbreviations with dots, names as iPHONE, and in the
# source what holds digits.
_TYPED = re.compile(r"@|://|\w\.\w|[a-z][A-Z]")
_KEPT = re.compile(rf"{_TYPED.pattern}|\d")
# A text with such a word is not in capitals. Most texts have one, which is found at once.
_SMALL_WORD = re.compile(r"(?<!\S)[A-Za-z][a-z]{2,}(?!\S)")
# English "I" and "I'm", but not the end of "Hawai'i".
_I = re.compile(r"(?<!\w)(?<!\w['’])i(?!\w)")
# The i with a dot and the one without are two letters in Turkish and Azerbaijani.
_DOTTED = ("tr", "tur", "az", "aze")
# Georgian has capitals in Unicode, which many fonts lack and few people write.
_UNRAISED = ("ka", "kat", "geo")
# A word by itself that is too long for most acronyms, as on a button.
_LONE = re.compile(r"[\W_]*[^\W\d_]{5,}[\W_]*")
# Words that a heading has, and a list of names has not.
_TITLE = re.compile(
    r"(?i)\b(?:a|an|and|are|as|at|by|can|do|for|from|how|in|into|is|it|its|my|new|no|not|of|on|or"
    r"|our|that|the|this|to|we|what|when|why|with|you|your)\b"
)
_BIG_WORD = re.compile(r"(?<=\s)[A-Z][a-z]+(?:['’-]\w+)*(?=[:,]?(?:\s|$))")


def read(text: Traced, about: About) -> tuple[Traced, bool | None]:
    """Read a text in capitals, and an English Heading In Title Case, as a sentence."""
    source = about.languages[0]
    said = read_capitals(text.text, source)
    raised = said != text.text
    if not raised and base_language(source) in ("en", "eng") and _is_title(text.text):
        said = _BIG_WORD.sub(lambda word: word[0].lower(), text.text)
    return (text, None) if said == text.text else (Traced(said, text.places), raised)


def write(said: Traced, memo: bool, about: About, weigh: Callable) -> Traced:
    """Put the translation of a text in capitals into capitals."""
    if not memo:
        return said
    return said.replace(
        ((i, i + 1), upper(letter, about.languages[1]))
        for word in re.finditer(r"\S+", said.text)
        if not _TYPED.search(word[0])
        for i, letter in enumerate(word[0], word.start())
    )


def is_in_capitals(text: str) -> bool:
    """Whether a text is written in capitals, and is more than a name or two: "IBM PC" is not.

    It has three words in capitals, or two, one of them of four letters, or is one long word. Words
    that stay as they are typed do not count. Acronyms do not put a Chinese or an Arabic text in
    capitals, and a word in such a script does not hide that the others are in them.
    """
    if text == text.lower() or _SMALL_WORD.search(text):
        return False
    capitals, others, small = [], [], 0  # how many letters each word has, and small ones in all
    for word in text.split():
        letters = [] if _KEPT.search(word) else list(filter(str.isalpha, word))
        # A sharp s is no small letter: its capital is two letters.
        lowered = sum(letter != (big := letter.upper()) and len(big) == 1 for letter in letters)
        small += lowered
        if lowered and len(letters) > 2:
            return False
        # A letter that folds to itself has no small form, or as in Cherokee a rare one.
        if letters and not lowered:
            raised = all(letter.casefold() != letter for letter in letters)
            (capitals if raised else others).append(len(letters))
    enough = len(capitals) > 2 or (len(capitals) == 2 and max(capitals) > 3)
    # Of words in scripts without capitals, their letters, and small letters in words as kg.
    few = 3 * len(others) <= len(capitals) and max(2 * sum(others), 4 * small) <= sum(capitals)
    return few and (enough or bool(_LONE.fullmatch(text)))


def read_capitals(text: str, language: str) -> str:
    """A text as a model shall read it: in lower case where it is in capitals, else as it is.

    Each of its sentences begins with a capital, and so does English "I". The text keeps its length,
    each letter in its place.
    """
    if not is_in_capitals(text):
        return text
    read = ""
    for sentence in split_sentences(text, language):
        places = (i for i, letter in enumerate(sentence) if letter.upper() != letter.lower())
        begin = next(places, 0) + 1  # behind the first letter that has two forms
        small = re.sub(r"\S+", lambda word: _read_word(word[0], base_language(language)), sentence)
        read += sentence[:begin] + small[begin:]
    return read


def lower(text: str, language: str) -> str:
    """A text in small letters. The language tells which small letter I has."""
    if base_language(language) in _DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def upper(text: str, language: str) -> str:
    """A text in capitals. The language tells which capital i has. Georgian stays as it is."""
    if (language := base_language(language)) in _UNRAISED:
        return text
    return (text.replace("i", "İ") if language in _DOTTED else text).upper()


def _is_title(text: str) -> bool:
    """Whether a text is a heading: its longer words begin with a capital, and no stop ends it."""
    words = text.split()
    long = [word for word in words if len(word) > 3 and word[0].isalpha()]
    is_short = 3 <= len(words) <= 20 and text[-1].isalnum() and len(long) > 1
    return is_short and all(word[0].isupper() for word in long) and bool(_TITLE.search(text))


def _read_word(word: str, language: str) -> str:
    small = lower(word, language)
    # Elsewhere two characters would come of the dotted capital I, and of no other letter.
    if _KEPT.search(word) or len(small) != len(word):
        return word
    return _I.sub("I", small) if language in ("en", "eng") else small
