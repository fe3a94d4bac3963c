"""Final stops that a model adds to headings and items, which have none."""

import re
from collections.abc import Callable

import regex

from resmlp_mt.text.punctuation import CLOSERS, ENDS, UNSEEN
from resmlp_mt.text.segments import About, Traced
from resmlp_mt.text.sentences import split_sentences

# The end of a source that ends in a word, perhaps within quotes, brackets or emphasis.
_OPEN_END = regex.compile(rf"(?V1)[^\W_][{CLOSERS}“*_~{UNSEEN}\s]*$")
# One mark at the end of a translation. Several say more than that the sentence ends.
_STOP = regex.compile(rf"(?V1)(?<=[^.!?…\s{ENDS}])[.!?{ENDS}]\Z")
# A word with a stop within it, as "p.m.", which the splitter does not know in all languages; and
# abbreviations that end sentences too.
_DOTTED = re.compile(r"(?:\w\.\w+|\b(?:al|etc|usw))\.\Z")


def read(text: Traced, about: About) -> tuple[Traced, bool | None]:
    """Note whether a text ends in a word and needs no stop."""
    return text, (about.is_item and bool(_OPEN_END.search(text.text))) or None


def write(said: Traced, memo: bool, about: About, weigh: Callable) -> Traced:
    """Drop a final stop. That of an abbreviation stays, as that of "usw."."""
    text, language = said.text, about.languages[1]
    if not _STOP.search(text) or _DOTTED.search(text):
        return said
    if text[-1] == "." and split_sentences(f"{text[-100:]} The", language)[-1] != "The":
        return said  # it ends in an abbreviation
    return said.replace([((len(text) - 1, len(text)), "")])
