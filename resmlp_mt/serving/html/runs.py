"""Neighbours of an HTML tree as one text, and its translation as their tree again."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bs4 import NavigableString, Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.kinds import Kinds
from resmlp_mt.text.punctuation import UNSPACED
from resmlp_mt.text.rules.pictures import FIRST_MARK

_BLANKS = " \t\n\r\f"  # of HTML
_TAG, _MARKS = r"</?g\d+>", rf"{FIRST_MARK}-\U0010ffff"
_WORD = re.compile(rf"[^\W{UNSPACED}]+")
# What looks like a tag or a mark of ours, and placeholders.
_KEPT = re.compile(rf"{_TAG}|[{_MARKS}]+")
_PIECE = re.compile(rf"[{_BLANKS}]+|{_KEPT.pattern}|{_WORD.pattern}|[^{_BLANKS}]")
_TOKEN = re.compile(rf"({_TAG}|[{_MARKS}])")
Nodes = list[PageElement | str]


class Run:
    """Neighbours in a tree that are translated together.

    In the text an element with words is a pair of tags with a number, which move with its words. A
    word that stays is a private character. What has no words goes with the word or the element that
    it touches, else with the next one: such a group has a pair of tags too.

    Attributes:
        text: White space collapsed; empty if there is nothing to translate.

    Args:
        nodes: The neighbours.
        kinds: What they are.
        free: Private characters that the tree does not have.
    """

    def __init__(self, nodes: list[PageElement], kinds: Kinds, free: Iterator[str]):
        self.nodes, self._kinds, self._free = nodes, kinds, free
        self._held: dict[str, Nodes] = {}  # by the characters that stand for them
        # Of each number its tag, and what stands before its words and behind them.
        self._pairs: list[tuple[Tag | None, Nodes, Nodes]] = []
        # What is said; and tags that are, before the next word, and whether a blank is.
        self._said: list[str] = []
        self._opened: list[str] = []
        self._blank = False
        self._write(nodes)
        text = "".join(self._said)
        self.text = text if any(map(str.isalnum, re.sub(_TAG, "", text))) else ""

    def draw(self, translation: str) -> Nodes:
        """The nodes of a translation, with each element of the run once."""
        held, left = dict(self._held), set(range(len(self._pairs)))
        opened: list[tuple[int, Nodes]] = [(-1, [])]
        # No blank ends an element.
        for token in _TOKEN.split(re.sub(r" ((?:</g\d+>)+)", r"\1 ", translation)):
            number = int(token.strip("</g>")) if re.fullmatch(_TAG, token) else None
            if number is None:
                opened[-1][1].extend(held.pop(token, ()) if token in self._held else [token])
            elif token[1] != "/" and number in left:
                left.remove(number)
                opened.append((number, []))
            elif token[1] == "/" and number in dict(opened):
                while self._close(opened) != number:
                    pass
        while len(opened) > 1:
            self._close(opened)
        # Of some there may be nothing in the translation.
        nodes = opened[0][1] + [node for lost in held.values() for node in (" ", *lost)]
        for number in sorted(left, reverse=True):
            nodes = self._wrap(number, nodes)
        first, last = (
            str(node) if self._kinds[node] == "text" else ""
            for node in (self.nodes[0], self.nodes[-1])
        )
        before = first[: len(first) - len(first.lstrip(_BLANKS))]
        return _make_nodes([before, *nodes, last[len(last.rstrip(_BLANKS)) :]])

    def _close(self, opened: list[tuple[int, Nodes]]) -> int:
        """End the innermost of the pairs that are open; its number."""
        number, inner = opened.pop()
        opened[-1][1].extend(self._wrap(number, inner))
        return number

    def _wrap(self, number: int, inner: Nodes) -> Nodes:
        tag, before, behind = self._pairs[number]
        if tag is None:
            return [*before, *inner, *behind]
        tag.clear()
        tag.extend(_make_nodes(inner))
        return [tag]

    def _write(self, nodes: Iterable[PageElement]) -> None:
        waiting: Nodes = []  # without words
        touch = goes_on = False  # these the word before; the next text that
        last = None  # where that begins in what is said
        for part in self._join(nodes):
            is_text = type(part) is str
            is_inline = isinstance(part, Tag) and self._kinds[part] in ("inline", "raised")
            if is_text and part[0] in _BLANKS:
                if touch:
                    self._attach(last, waiting)
                    waiting, touch = [], False
                if waiting:
                    waiting.append(" ")
                else:
                    self._blank = True
                goes_on = False
                continue
            said = part if is_text else None if is_inline else self._hold(part)
            if said is None and not is_inline:
                touch = touch or not (waiting or self._blank or last is None)
                waiting += part if isinstance(part, list) else [part]
                continue
            if touch:
                self._attach(last, waiting)
                waiting, touch = [], False
            place = len(self._said)
            around = [self._open(None, before=waiting)] if waiting else []
            waiting = []
            if is_inline:
                around.append(self._open(part))
                self._write(part.children)
            else:
                self._said += [*" " * (self._blank and place > 0), *self._opened, said]
                self._opened, self._blank = [], False
            self._said += [f"</g{number}>" for number in reversed(around)]
            if not (is_text and goes_on):
                last = place + (self._said[place] == " ")
            goes_on = is_text and not around
        if waiting and last is not None:
            ends_blank = waiting[-1] == " "
            nodes = [" "] * self._blank + waiting[: len(waiting) - ends_blank]
            self._blank = ends_blank
            self._attach(last, nodes)

    def _join(self, nodes: Iterable[PageElement]) -> list[PageElement | Nodes | str]:
        """Blanks and words of text, elements, and lists of what is one word that stays."""
        parts: list[PageElement | Nodes | str] = []
        for node in nodes:
            kind = self._kinds[node]
            pieces = _PIECE.findall(node) if kind == "text" else [node] * (kind != "reading")
            for piece in pieces:
                last = parts[-1] if parts else None
                if self._stays(piece) and self._is_word(last, kind == "raised"):
                    parts[-1] = [*_list(last), piece]
                elif self._stays(last) and self._is_word(piece, False):
                    parts[-1] = [*_list(last), piece]
                else:
                    is_kept = type(piece) is str and _KEPT.fullmatch(piece)
                    parts.append([piece] if is_kept else piece)
        return parts

    def _stays(self, part: PageElement | Nodes | str | None) -> bool:
        """Whether letters that touch it are of a word with it, which stays."""
        if part is None or isinstance(part, list):
            return part is not None
        if type(part) is str:
            return bool(_KEPT.fullmatch(part))
        return self._kinds[part] in ("raised", "word")

    def _is_word(self, part: PageElement | Nodes | str | None, raised: bool) -> bool:
        """Whether something that stays is of a word with it."""
        if type(part) is str:
            return bool(_WORD.fullmatch(part))
        return part is not None and raised and (isinstance(part, list) or self._is_short(part))

    def _is_short(self, part: PageElement) -> bool:
        """Whether it is a word by itself."""
        return self._kinds[part] in ("inline", "raised") and len(part.get_text().split()) == 1

    def _hold(self, part: PageElement | Nodes) -> str | None:
        """The character for a word that stays; None if it has no words, or there is no more."""
        is_word = isinstance(part, list) or self._kinds[part] != "atom"
        mark = next(self._free, None) if is_word else None
        if mark:
            self._held[mark] = _list(part)
        return mark

    def _open(self, tag: Tag | None, before: Sequence = (), behind: Sequence = ()) -> int:
        number = len(self._pairs)
        self._pairs.append((tag, list(before), list(behind)))
        self._opened.append(f"<g{number}>")
        return number

    def _attach(self, start: int, nodes: Nodes) -> None:
        """Put nodes behind what is said from a place on."""
        number = self._open(None, behind=nodes)
        self._said.insert(start, self._opened.pop())
        self._said.append(f"</g{number}>")


def _list(part: PageElement | Nodes | str) -> Nodes:
    return part if isinstance(part, list) else [part]


def _make_nodes(nodes: Nodes) -> list[PageElement]:
    return [NavigableString(node) if type(node) is str else node for node in nodes]
