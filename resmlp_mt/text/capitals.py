"""Sentences in capitals, which models know less well: read in lower case, answered in capitals."""

import re

from resmlp_mt.text.sentences import base_language, split_sentences

# Words that stay as they are typed: addresses, abbreviations with dots, and what holds digits.
_KEPT = re.compile(r"@|://|\w\.\w|\d")
# Such a word without the punctuation around it.
_CORE = re.compile(r"[\w@#](?:\S*[\w/])?")
# English "I" and "I'm", but not the end of "Hawai'i".
_I = re.compile(r"(?<!\w)(?<!\w['’])i(?!\w)")
# The i with a dot and the one without are two letters in Turkish and Azerbaijani.
_DOTTED = ("tr", "tur", "az", "aze")
# Georgian has capitals in Unicode, which many fonts lack and few people write.
_UNRAISED = ("ka", "kat", "geo")
# A word by itself that is too long for most acronyms, as on a button.
_LONE = re.compile(r"[\W_]*[^\W\d_]{5,}[\W_]*")
# As many words, and letters, of scripts without capitals may come on one in capitals.
_WORDS, _LETTERS = 1 / 3, 1 / 2


def is_in_capitals(text: str) -> bool:
    """Whether a text is written in capitals, and is more than a name or two: "IBM PC" is not.

    It has three words in capitals, or two, one of them of four letters. None has a small letter;
    those that have no capital, as the German sharp s, do not count. Words with digits and addresses
    do not count either. Acronyms do not put a Chinese or an Arabic text in capitals, and a word in
    such a script does not hide that the others are in them.
    """
    # How many letters each word has that is in capitals, and each other one.
    capitals, others = [], []
    for word in text.split():
        if _KEPT.search(word):
            continue
        letters = list(filter(str.isalpha, word))
        if any(map(_is_small, letters)):
            return False
        # What folds to itself has no small form, or as in Cherokee a rare one.
        raised = all(letter.casefold() != letter for letter in letters)
        if letters:
            (capitals if raised else others).append(len(letters))
    enough = len(capitals) > 2 or (len(capitals) == 2 and max(capitals) > 3)
    enough = enough or bool(_LONE.fullmatch(text))
    few = len(others) <= len(capitals) * _WORDS and sum(others) <= sum(capitals) * _LETTERS
    return enough and few


def read_capitals(text: str, language: str) -> str:
    """A text as a model shall read it: in lower case where it is in capitals, else as it is.

    Each of its sentences begins with a capital, and so does English "I". Addresses and words with
    digits stay as they are.

    Args:
        text: What is translated at once.
        language: Its code.

    Returns:
        As many characters, each in the place of the same one.
    """
    if not is_in_capitals(text):
        return text
    base = base_language(language)
    return "".join(_read(sentence, base) for sentence in split_sentences(text, language))


def write_capitals(translation: str, source: str, language: str) -> str:
    """Put the translation of a text in capitals into capitals.

    Args:
        translation: Of what `read_capitals` returned.
        source: What it was given. Addresses and words with digits stay as they are there.
        language: Of the translation: its code. Georgian stays as it is.
    """
    base = base_language(language)
    if base in _UNRAISED:
        return translation
    words = [_CORE.search(word) for word in source.split() if _KEPT.search(word)]
    kept = {word[0] for word in words if word and word[0] != word[0].upper()}
    if not kept:
        return upper(translation, base)
    longest_first = "|".join(map(re.escape, sorted(kept, key=len, reverse=True)))
    # Within ASCII, since Chinese puts no blank before an address.
    parts = re.split(rf"(?a:(?<!\w)({longest_first})(?!\w))", translation)
    return "".join(part if i % 2 else upper(part, base) for i, part in enumerate(parts))


def lower(text: str, language: str) -> str:
    """A text in small letters.

    Args:
        text: Any text.
        language: Its code, without a region. It tells which small letter I has.
    """
    if language in _DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def upper(text: str, language: str) -> str:
    """A text in capitals. Arguments as for `lower`: the language tells which capital i has."""
    return (text.replace("i", "İ") if language in _DOTTED else text).upper()


def _is_small(letter: str) -> bool:
    """Whether it has a capital and is none. The capital of the sharp s is two letters."""
    capital = letter.upper()
    return len(capital) == 1 and capital != letter


def _read(sentence: str, language: str) -> str:
    places = (i for i, letter in enumerate(sentence) if letter.upper() != letter.lower())
    begin = next(places, 0) + 1  # behind the first letter that has two forms
    read = re.sub(r"\S+", lambda word: _read_word(word[0], language), sentence)
    return sentence[:begin] + read[begin:]


def _read_word(word: str, language: str) -> str:
    small = lower(word, language)
    # Elsewhere two characters would come of the dotted capital I, and of no other letter.
    if _KEPT.search(word) or len(small) != len(word):
        return word
    return _I.sub("I", small) if language in ("en", "eng") else small
