"""Final stops that a model adds to headings and items, which have none."""

import re

import regex

from resmlp_mt.text.marks import BULLET
from resmlp_mt.text.punctuation import CLOSERS, ENDS, UNSEEN
from resmlp_mt.text.sentences import split_sentences

# A line that is a heading of Markdown, an item of a list or a row of a table.
_ITEM = re.compile(rf"\s*(?:{BULLET}|\d{{1,3}}[.)])\s+\S")
# The end of a source that ends in a word, perhaps within quotes, brackets or emphasis.
_OPEN_END = regex.compile(rf"(?V1)[^\W_][{CLOSERS}“*_~{UNSEEN}\s]*$")
# One mark at the end of a translation. Several say more than that the sentence ends.
_STOP = regex.compile(rf"(?V1)(?<=[^.!?…\s{ENDS}])[.!?{ENDS}]\Z")
# A word with a stop within it, as "p.m.", which the splitter does not know in all languages; and
# abbreviations that end sentences too.
_DOTTED = re.compile(r"(?:\w\.\w+|\b(?:al|etc|usw))\.\Z")
# In English the splitter knows words that sentences begin with, behind abbreviations too.
_NEXT = "The"


def is_item(line: str) -> bool:
    """Whether a line is a heading, an item of a list or a row of a table, by what it begins with.

    >>> is_item("- milk"), is_item("## On Monday"), is_item("Milk - and bread")
    (True, True, False)
    """
    return bool(_ITEM.match(line))


def drop_added_stop(text: str, source: str, language: str) -> str:
    """A translation without its final stop, where the source ends in a word.

    Models learn from sentences, and take what has no stop for one that lost it.

    >>> drop_added_stop("Zwei Brote.", "two loaves", "de")
    'Zwei Brote'

    Args:
        text: The translation.
        source: What was translated.
        language: Of the translation. The stop of an abbreviation stays, as that of "usw.".
    """
    if not (_OPEN_END.search(source) and _STOP.search(text)) or _DOTTED.search(text):
        return text
    if text[-1] == "." and split_sentences(f"{text[-100:]} {_NEXT}", language)[-1] != _NEXT:
        return text  # it ends in an abbreviation
    return text[:-1]
