"""Neighbours of an HTML tree as one text, and its translation as their tree again."""

import re
from collections.abc import Iterable, Iterator

from bs4 import NavigableString, Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.kinds import Kinds
from resmlp_mt.text.punctuation import UNSPACED
from resmlp_mt.text.rules.pictures import FIRST_MARK

_BLANKS = " \t\n\r\f"  # of HTML
_TAG, _MARKS = r"</?g\d+>", rf"{FIRST_MARK}-\U0010ffff"
_WORD = re.compile(rf"[^\W{UNSPACED}]+")
# What looks like ours, and placeholders.
_KEPT = re.compile(rf"{_TAG}|[{_MARKS}]+")
_PIECE = re.compile(rf"[{_BLANKS}]+|{_KEPT.pattern}|{_WORD.pattern}|[^{_BLANKS}]")
_TOKEN = re.compile(rf"({_TAG}|[{_MARKS}])")
Nodes = list[PageElement]


class Run:
    """Neighbours in a tree that are translated together.

    In the text an element with words is a pair of tags with a number, which move with its words. A
    word that stays is a private character, of those that `free` yields. What has no words goes with
    the word or the element that it touches, else with the next one: such a group has a pair too.

    Attributes:
        text: White space collapsed; empty if there is nothing to translate.
        held: The words that stay, by the characters that stand for them.
    """

    def __init__(self, nodes: list[PageElement], kinds: Kinds, free: Iterator[str]):
        self.nodes, self._kinds, self._free = nodes, kinds, free
        self.held: dict[str, Nodes] = {}
        # Of each number its tag, and what stands before its words and behind them.
        self._pairs: list[tuple] = []
        text = self._say(nodes).strip(" ")
        self.text = text if any(map(str.isalnum, re.sub(_TAG, "", text))) else ""

    def draw(self, translation: str) -> list[PageElement]:
        """The nodes of a translation, with each element of the run once."""
        held, left = dict(self.held), set(range(len(self._pairs)))
        opened: list[tuple[int, Nodes]] = [(-1, [])]

        def close(number: int) -> None:
            while opened[-1][0] != number:
                last, inner = opened.pop()
                opened[-1][1].extend(self._wrap(last, inner))

        # No blank ends an element.
        for token in _TOKEN.split(re.sub(r" ((?:</g\d+>)+)", r"\1 ", translation)):
            number = int(token.strip("</g>")) if re.fullmatch(_TAG, token) else None
            if number is None:
                said = held.pop(token, []) if token in self.held else [NavigableString(token)]
                opened[-1][1].extend(said)
            elif token[1] != "/" and number in left:
                left.remove(number)
                opened.append((number, []))
            elif token[1] == "/" and number in dict(opened):
                close(number)
                close(opened[-2][0])
        close(-1)
        # Of some there may be nothing in the translation.
        nodes = opened[0][1]
        for lost in held.values():
            nodes += [NavigableString(" "), *lost]
        for number in sorted(left):  # an inner one comes first
            nodes = self._wrap(number, nodes)
        ends = self.nodes[:1] + self.nodes[-1:]
        first, last = (node if self._kinds[node] == "text" else "" for node in ends)
        before, behind = len(first) - len(first.lstrip(_BLANKS)), len(last.rstrip(_BLANKS))
        return [NavigableString(first[:before]), *nodes, NavigableString(last[behind:])]

    def _wrap(self, number: int, inner: Nodes) -> Nodes:
        tag, *around = self._pairs[number]
        if tag is None:
            return [*around[0], *inner, *around[1]]
        tag.clear()
        tag.extend(inner)
        return [tag]

    def _say(self, nodes: Iterable[PageElement]) -> str:
        """The text of neighbours. Where they begin or end with a blank, it has one."""
        # Words, elements and blanks, each with what goes before it, and behind.
        said: list[tuple[str, Nodes, Nodes]] = [("", [], [])]
        waiting: Nodes = []  # without words, for the next one
        for part in self._join(nodes):
            if isinstance(part, list) and (mark := next(self._free, None)):
                self.held[mark] = [NavigableString(x) if type(x) is str else x for x in part]
                part = mark
            if isinstance(part, list | tuple):
                touches = said[-1][0].strip(_BLANKS) and not waiting
                (said[-1][2] if touches else waiting).extend(part)
            elif type(part) is str and part[0] in _BLANKS and waiting:
                waiting.append(NavigableString(" "))
            else:
                text = self._say(part.children) if isinstance(part, Tag) else part
                said += [(" ", [], [])] * (text[0] in _BLANKS)
                if word := text.strip(_BLANKS):
                    word = self._pair(word, part) if isinstance(part, Tag) else word
                    said.append((word, waiting, []))
                    waiting = []
                    said += [(" ", [], [])] * (text[-1] in _BLANKS)
        while waiting and said[-1][0] == " ":
            waiting.insert(0, NavigableString(said.pop()[0]))
        end = waiting[-1:] == [" "]  # it is of no element
        said[-1][2].extend(waiting[: len(waiting) - end])
        said += [(" ", [], [])] * end
        texts = (
            self._pair(word, None, before, behind) if before or behind else word
            for word, before, behind in said
        )
        return re.sub(" +", " ", "".join(texts))

    def _pair(self, text: str, tag: Tag | None, *around: Nodes) -> str:
        """The text within a pair of tags, for a tag, or for what is `around` it."""
        self._pairs.append((tag, *around))
        return f"<g{len(self._pairs) - 1}>{text}</g{len(self._pairs) - 1}>"

    def _join(self, nodes: Iterable[PageElement]) -> list[PageElement | Nodes | str | tuple]:
        """Blanks and words, elements, lists of what is one word that stays, tuples of atoms."""
        parts: list = []
        for node in nodes:
            kind = self._kinds[node]
            if kind == "text":
                pieces = [[p] if _KEPT.fullmatch(p) else p for p in _PIECE.findall(node)]
            else:
                pieces = {"inline": [node], "reading": [], "atom": [(node,)]}.get(kind, [[node]])
            for piece in pieces:
                last = parts[-1] if parts else ""
                if isinstance(last, tuple) and isinstance(piece, tuple):
                    parts[-1] = last + piece
                elif _are_one_word(last, piece, kind == "raised"):
                    both = [part if isinstance(part, list) else [part] for part in (last, piece)]
                    parts[-1] = both[0] + both[1]
                else:
                    parts.append(piece)
        return parts


def _are_one_word(last, piece, raised: bool) -> bool:
    """Whether what stays and what touches it are one word, which stays."""
    if raised and isinstance(last, Tag):
        return len(last.get_text().split()) == 1
    if isinstance(last, list) and isinstance(piece, list):
        return raised
    stays, other = (last, piece) if isinstance(last, list) else (piece, last)
    return isinstance(stays, list) and type(other) is str and bool(_WORD.fullmatch(other))
