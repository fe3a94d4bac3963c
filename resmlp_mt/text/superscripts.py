"""Raised and lowered characters and fractions, which the subwords of most models write plainly."""

import re
import unicodedata
from collections import Counter, defaultdict

# Those of Latin-1, raised and lowered digits and letters, signs of marks, and fractions.
_MARKED = "\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u2070-\u209c\u2120\u2122\u2150-\u215f\u2189"
_IS_MARKED = re.compile(f"[{_MARKED}]")
# The slash of fractions is in their plain form: 1⁄2.
_WORD = re.compile(rf"[\w\u2044{_MARKED}]+")


def restore_superscripts(translation: str, source: str) -> str:
    """Write words of a translation as its source has them: m2 as m², 21⁄2 as 2½.

    Subwords by NFKC, SentencePiece's default, make 102 of 10², which is another number.

    >>> restore_superscripts("Die Wohnung hat 80 m2.", "The flat has 80 m².")
    'Die Wohnung hat 80 m².'

    Args:
        translation: What a model made of the source.
        source: Raw text.

    Returns:
        The translation with those words of the source that it has in plain form, in any case. Those
        that it has more or less often than the source stay, since nobody knows which is which.
    """
    if not _IS_MARKED.search(source):
        return translation
    spellings = defaultdict(list)
    for word in _WORD.findall(source):
        spellings[_spell_plainly(word)].append(word)
    often = Counter(map(_spell_plainly, _WORD.findall(translation)))
    as_often = {
        plain: iter(words)
        for plain, words in spellings.items()
        if len(words) == often[plain] and any(map(_IS_MARKED.search, words))
    }

    def restore(match: re.Match) -> str:
        return next(as_often.get(_spell_plainly(match[0]), iter(())), match[0])

    return _WORD.sub(restore, translation)


def _spell_plainly(word: str) -> str:
    return unicodedata.normalize("NFKC", word).lower()
