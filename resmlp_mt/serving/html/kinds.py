"""Kinds of nodes in an HTML tree, for a translator."""

import re

from bs4 import NavigableString, Tag
from bs4.element import PageElement

# Tags within a sentence. All others begin a new one.
_INLINE = set(
    "a abbr acronym b bdi bdo big cite del dfn em font i ins label mark q rb ruby s small span "
    "strike strong sub sup tt u var".split()
)
# What stands in a sentence as it is, together with all that is in it: with text that people read,
# and with none. Others stand there too, but hold text of their own.
_READ = set("audio canvas code kbd map math meter output picture progress samp time video".split())
_UNREAD = set("embed iframe img input object script style svg template textarea wbr".split())
_APART = {"button", "select"}
_READINGS = {"rt", "rp", "rtc"}  # of the words before: of no use beside a translation
# What a number of a footnote stands behind: a word or a stop. m², 10³ and H₂O are words themselves.
_NOTED = re.compile(r"(?:[^\W\d_]{3}|[^\w\s])\Z")


def is_kept(tag: Tag) -> bool:
    """Whether its author wants it left alone."""
    return tag.get("translate") == "no" or "notranslate" in tag.get_attribute_list("class")


class Kinds:
    """The kind of each node of a tree.

    In a sentence: "text"; "inline" with words in it; a "word" that stays as it is; "apart", which
    is such a word whose text is translated by itself; a "raised" or lowered part of a word; an
    "atom", which is no word; and a "reading", which is left out. Between sentences: a "block",
    whose text is translated, and a "wall", whose text is not.
    """

    def __init__(self):
        self._told: dict[int, str] = {}

    def __getitem__(self, node: PageElement) -> str:
        if not isinstance(node, Tag):  # comments stay, as what is in a script
            return "text" if type(node) is NavigableString else "atom"
        if id(node) not in self._told:
            self._told[id(node)] = self._tell(node)
        return self._told[id(node)]

    def _tell(self, tag: Tag) -> str:
        if tag.name in _READINGS:
            return "reading"
        kept, within = is_kept(tag), tag.name in _INLINE | _APART
        text = tag.get_text().strip() if within or tag.name in _READ else ""
        if tag.name in ("sub", "sup") and len(text.split()) == 1:
            beside = [tag.previous_sibling, tag.next_sibling]
            before, behind = ("" if node is None else node.get_text() for node in beside)
            if tag.name == "sup" and _NOTED.search(before[-3:]) and not behind[:1].isalnum():
                return "atom"
            if before[-1:].isalnum() or behind[:1].isalnum():
                return "raised"
        if tag.name in _READ | _UNREAD or (kept and within):
            return "word" if text else "atom"
        if kept or tag.name == "pre":  # mostly code, and its white space means something
            return "wall"
        if tag.name in _APART:
            return "apart"
        kinds = [(self[child], child) for child in tag.children]
        if tag.name not in _INLINE or any(kind in ("block", "wall") for kind, _ in kinds):
            return "block"
        if any(kind == "inline" or (kind == "text" and node.strip()) for kind, node in kinds):
            return "inline"
        return "apart" if text else "atom"
