"""The text of an HTML tree, in runs of neighbours that are translated together."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter

from bs4 import NavigableString, Tag
from bs4.element import PageElement

from resmlp_mt.text.stand_ins import FIRST_MARK

# Tags within a sentence. All others begin a new one.
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite del dfn em font i ins label mark q rb ruby s small span "
    "strike strong sub sup tt u var".split()
)
# What stands in a sentence as it is, together with all that is in it.
_ATOMS = frozenset(
    "audio canvas code embed iframe img input kbd map math meter object output picture progress "
    "samp script style svg template textarea time video wbr".split()
)
# What a number of a footnote stands behind: a word or a stop. m², 10³ and H₂O are words themselves.
_NOTED = re.compile(r"(?:[^\W\d_]{3}|[^\w\s])\Z")
# What stands in a sentence too, but holds text of its own.
_APART = frozenset(["button", "select"])
# These hold none that people read.
_UNREAD = frozenset("iframe object script style svg template textarea".split())
# How the words before are read: of no use beside a translation.
_READINGS = frozenset(["rt", "rp", "rtc"])
_MOST_MARKS = 0x10000 - 2  # private characters of the last plane
Tags = tuple[Tag, ...]


def is_kept(tag: Tag) -> bool:
    """Whether its author wants it left alone."""
    return tag.get("translate") == "no" or "notranslate" in tag.get_attribute_list("class")


def is_note(tag: Tag) -> bool:
    """Whether it is the number of a footnote, which stays at the word before it."""
    if tag.name != "sup" or any(map(str.isalpha, tag.get_text())):
        return False
    before, behind = (
        str(beside) if type(beside) is NavigableString else ""
        for beside in (tag.previous_sibling, tag.next_sibling)
    )
    return bool(_NOTED.search(before)) and not behind[:1].isalnum()


class Kinds:
    """What each node of a tree is.

    In a sentence: "text"; "inline" with words in it; an "atom", which stays as it is; "apart",
    which is an atom whose text is translated by itself; and a "reading", which is left out. Between
    sentences: a "block", whose text is translated, and a "wall", whose text is not.
    """

    def __init__(self):
        self.told: dict[int, str] = {}

    def __getitem__(self, node: PageElement) -> str:
        if not isinstance(node, Tag):  # comments stay, as what is in a script
            return "text" if type(node) is NavigableString else "atom"
        if id(node) not in self.told:
            self.told[id(node)] = self._tell(node)
        return self.told[id(node)]

    def _tell(self, tag: Tag) -> str:
        if tag.name in _READINGS:
            return "reading"
        kept = is_kept(tag)
        if tag.name in _ATOMS or (kept and tag.name in _INLINE | _APART) or is_note(tag):
            return "atom"
        if kept or tag.name == "pre":  # mostly code, and its white space means something
            return "wall"
        if tag.name in _APART:
            return "apart"
        kinds = [(self[child], child) for child in tag.children]
        if tag.name not in _INLINE or any(kind in ("block", "wall") for kind, _ in kinds):
            return "block"
        words = any(k == "inline" or (k == "text" and str(node).strip()) for k, node in kinds)
        return "inline" if words else "apart"


@dataclass
class Word:
    """A word, and the tags around it, outermost first.

    Attributes:
        text: The word.
        tags: Those around most of it.
        parts: Those around each of its parts. Without blanks a whole sentence is a word.
        sentence: The number of that, as it was translated.
    """

    text: str
    tags: Tags
    parts: list[Tags]
    sentence: int


@dataclass
class Run:
    """Neighbours in the tree that are translated together."""

    nodes: list[PageElement]
    kinds: Kinds
    chunks: list[tuple[int, str, Tags]] = field(default_factory=list)  # by place in `raw`
    size: int = 0
    atoms: list[tuple[int, PageElement, Tags]] = field(default_factory=list)  # so too
    # Atoms that are words of the sentence, by the character that stands for them in `raw`.
    marked: dict[str, tuple[PageElement, Tags]] = field(default_factory=dict)
    # The others with the spaces around them, by the word that follows. Some touch the one before.
    placed: list[tuple[int, list[PageElement], Tags, bool]] = field(default_factory=list)

    def __post_init__(self):
        found = [pair for node in self.nodes for pair in self._read(node, ())]
        texts = [str(node) if self.kinds[node] == "text" else "" for node, _ in found]
        # Who writes private characters keeps them.
        marks = any(map(str.strip, texts)) and max(map(max, filter(None, texts))) < FIRST_MARK
        # What follows each node.
        behind = [*accumulate(reversed(texts), lambda last, text: text[:1] or last, initial="")]
        for (node, tags), text, after in zip(found, texts, reversed(behind[:-1]), strict=True):
            if text:
                self._add(text, tags)
            elif marks and self._is_word(node, after) and len(self.marked) < _MOST_MARKS:
                mark = chr(ord(FIRST_MARK) + len(self.marked))
                self.marked[mark] = node, tags
                self._add(mark, tags)
            else:
                self.atoms.append((self.size, node, tags))
        self.raw = "".join(text for _, text, _ in self.chunks)
        self.spans = [found.span() for found in re.finditer(r"\S+", self.raw)]
        self.text = " ".join(self.raw[start:end] for start, end in self.spans)

    def cut(self, sentences: Sequence[str]) -> None:
        """Tell words and what is placed between them. No word reaches over two sentences."""
        ends = list(accumulate(map(len, sentences)))
        self.words, starts, begin = [], [], 0  # the last in the text
        for start, end in self.spans:
            first, last = bisect_right(ends, begin), bisect_left(ends, begin + end - start)
            edges = [start, *(start + e - begin for e in ends[first:last]), end]
            self.words += map(self._word, edges, edges[1:], range(first, last + 1))
            starts += edges[:-1]
            begin += end - start + 1
        self.end = self.spans[-1][1]  # of what is placed
        for place, atom, tags in self.atoms:
            word = bisect_left(starts, place)
            if word < len(starts):
                nodes = [atom, NavigableString(" " * self.raw[place : place + 1].isspace())]
            else:
                nodes = [NavigableString(self.raw[self.end : place]), atom]
                self.end = place
            touches = isinstance(atom, Tag) and is_note(atom)
            self.placed.append((word, [atom] if touches else nodes, tags, touches))

    def place(self, mark: str) -> None:
        """Have an atom stand before the word that follows, whose mark a translation has lost."""
        word = next(i for i, word in enumerate(self.words) if mark in word.text)
        node, tags = self.marked[mark]
        blank = NavigableString(" ")
        is_last = word == len(self.words) - 1
        self.placed.append((word, [blank, node] if is_last else [node, blank], tags, False))

    def _read(self, node: PageElement, tags: Tags) -> Iterator[tuple[PageElement, Tags]]:
        """Yield text and atoms, with the tags around them."""
        kind = self.kinds[node]
        if kind == "inline":
            for child in node.children:
                yield from self._read(child, (*tags, node))
        elif kind != "reading":
            yield node, tags

    def _add(self, text: str, tags: Tags) -> None:
        self.chunks.append((self.size, text, tags))
        self.size += len(text)

    def _is_word(self, node: PageElement, after: str) -> bool:
        """Whether an atom is read as a word: it holds text, and no letter touches it.

        Args:
            node: The atom.
            after: The character behind it.
        """
        if not isinstance(node, Tag) or node.name in _UNREAD or not node.get_text(strip=True):
            return False
        if is_note(node):
            return False
        before = self.chunks[-1][1] if self.chunks else ""
        return not (before[-1:].isalnum() or after.isalnum())

    def _word(self, start: int, end: int, sentence: int) -> Word:
        first = bisect_right(self.chunks, start, key=itemgetter(0)) - 1
        inside = []  # letters, how many tags, and which
        last = bisect_left(self.chunks, end, key=itemgetter(0))
        for place, text, tags in self.chunks[first:last]:
            part = text[max(start - place, 0) : end - place]
            if part:
                inside.append((sum(map(str.isalnum, part)), len(tags), tags))
        most, parts = max(inside, key=itemgetter(0, 1))[2], [tags for *_, tags in inside]
        return Word(self.raw[start:end], most, parts, sentence)
