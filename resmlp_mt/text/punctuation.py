"""Ends of sentences and clauses in the scripts of the world, and of characters.

The constants are for within the brackets of a set. Those of ends, commas and closers use properties
of Unicode, and need the library `regex` in its version 1: `regex.compile(f"(?V1)[{ENDS}]")`.
"""

from collections.abc import Iterable
from itertools import pairwise

import regex

# Ends of sentences that need no blank behind them, which those of ASCII do. Unicode has commas of
# Burmese, Balinese and Javanese among them. It lacks kunddaliya of Sinhala and shad of Tibetan.
ENDS = r"[\p{Sentence_Break=STerm}--[!?\u104a\u1b5e\ua9c8]]\u0df4\u0f0d-\u0f12\u0f14"
# Commas, colons and semicolons that need no blank behind them.
COMMAS = (
    r"[\p{Terminal_Punctuation}--[\p{Sentence_Terminal}\p{ASCII}\u0f0d-\u0f12\u1361]]"
    r"\u055d\u104a\u1b5e\ua9c8\ufe10\ufe11\ufe13\ufe14"
)
# Scripts that write words without blanks between them: Thai, Lao, Tibetan, Burmese, Khmer, Han,
# kana and Yi, with their punctuation and with full-width forms.
UNSPACED = (
    r"\u0e00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u2e80-\ua4cf\ua9e0-\ua9ff\uaa60-\uaa7f"
    r"\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
)
# Marks that close a quote or a bracket behind the end of a sentence.
CLOSERS = r"\"'\p{Close_Punctuation}\p{Final_Punctuation}"
# Characters that may stand behind an end unseen: marks of direction, joiners, blanks without width,
# and selectors of a picture's form.
UNSEEN = "\u061c\u200b\u200c\u200d\u200e\u200f\u202c\u2060\u2069\ufe0e\ufe0f\ufeff"

# A character as readers take it; and as far before it as the rules of UAX 29 look.
_CLUSTER = regex.compile(r"\X")
_CONTEXT = regex.compile(
    r"(?rs)(?:\p{GCB=Regional_Indicator}{1,100}|.)"
    r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]{0,100}"
)


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    """The parts of a text between places, which are in order. Joined they are the text."""
    ends = pairwise([0, *places, len(text)])
    return [text[start:end] for start, end in ends if start < end]


def may_cut(text: str, place: int) -> bool:
    """Whether no character, as readers take it, reaches over a place within a text.

    Letters keep their marks, emoji what is joined to them, flags their second letter, and Korean
    syllables their parts: the grapheme clusters of UAX 29.
    """
    start = _CONTEXT.match(text, 0, place).start()
    return any(match.end() == place for match in _CLUSTER.finditer(text, start, place + 1))
