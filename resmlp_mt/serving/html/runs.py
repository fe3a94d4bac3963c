"""Neighbours of an HTML tree as one text, and its translation as their tree again."""

import re
from collections.abc import Iterable, Iterator

from bs4 import NavigableString, Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.kinds import Kinds
from resmlp_mt.serving.html.parser import MARKS, Page

BLANKS = " \t\n\r\f"  # of HTML
_PART = re.compile(f"[{BLANKS}]+|[^{BLANKS}]+")
# What looks like a tag of ours, and placeholders within words.
_KEPT = re.compile(rf"(?<!\w)\w*(?:</?g\d+>|(?<=\w)[{MARKS}]+|[{MARKS}]+(?=\w))[\w{MARKS}]*")
_TOKEN = re.compile(rf"(</?g\d+>|[{MARKS}])")
_TAG = re.compile(r"<(/?)g(\d+)>")
_LONGEST = 100  # letters of a word before what is raised
_WORD_BEFORE, _WORD_BEHIND = re.compile(r"\w+\Z"), re.compile(r"\w+")
Nodes = list[PageElement | str]


class Run:
    """Neighbours in a tree that are translated together.

    In the text an element with words is a pair of tags with a number, which move with its words. A
    word that stays is a private character. What has no words goes with the word or the element that
    it touches, else with the next one: these are then in a pair too.

    Attributes:
        text: White space collapsed; empty if there is nothing to translate.

    Args:
        nodes: The neighbours.
        kinds: What they are.
        page: Where they are.
    """

    def __init__(self, nodes: list[PageElement], kinds: Kinds, page: Page):
        self.nodes, self.kinds, self.page = nodes, kinds, page
        self._held: dict[str, Nodes] = {}  # by the characters that stand for them
        # Of each number its tag, and what stands before its words and behind them.
        self._pairs: list[tuple[Tag | None, Nodes, Nodes]] = []
        self._said: list[str] = []
        self._opens: list[str] = []
        self._blank = False
        self._behind: Nodes | None = None  # of the pair that ended right here
        self._write(nodes)
        has_words = any(map(str.isalnum, _TAG.sub("", "".join(self._said))))
        self.text = "".join(self._said) if has_words else ""

    def draw(self, translation: str) -> Nodes:
        """The nodes of a translation, with each element of the run once."""
        held, waiting = dict(self._held), set(range(len(self._pairs)))
        opened: list[tuple[int, Nodes]] = [(-1, [])]

        def close() -> None:
            number, inner = opened.pop()
            opened[-1][1].extend(self._wrap(number, inner))

        for token in _TOKEN.split(translation):
            if tag := _TAG.fullmatch(token):
                number = int(tag[2])
                if not tag[1] and number in waiting:
                    waiting.remove(number)
                    opened.append((number, []))
                elif tag[1] and any(number == other for other, _ in opened):
                    while opened[-1][0] != number:
                        close()
                    close()
            else:
                opened[-1][1].extend(held.pop(token, ()) if token in self._held else [token])
        while len(opened) > 1:
            close()
        (_, nodes), = opened
        # The model may have said nothing at all for some.
        nodes += [node for lost in held.values() for node in (" ", *lost)]
        for number in sorted(waiting, reverse=True):
            nodes = self._wrap(number, nodes)
        edges = [str(node) if self.kinds[node] == "text" else "" for node in self._ends()]
        before = edges[0][: len(edges[0]) - len(edges[0].lstrip(BLANKS))]
        behind = edges[1][len(edges[1].rstrip(BLANKS)) :]
        return [NavigableString(n) if type(n) is str else n for n in (before, *nodes, behind)]

    def _ends(self) -> tuple[PageElement, PageElement]:
        return self.nodes[0], self.nodes[-1]

    def _wrap(self, number: int, inner: Nodes) -> Nodes:
        tag, before, behind = self._pairs[number]
        if tag is None:
            return [*before, *inner, *behind]
        tag.clear()
        tag.extend([NavigableString(n) if type(n) is str else n for n in inner])
        return [tag]

    def _write(self, nodes: Iterable[PageElement]) -> None:
        waiting: Nodes = []  # for the next word
        last = None  # where that before begins in what is said
        for part in self._cut(nodes):
            is_text = type(part) is str
            if is_text and part.isspace():
                if waiting and waiting[-1] != " ":
                    waiting.append(" ")
                self._blank |= not waiting
                continue
            mark = None
            if not is_text and (isinstance(part, list) or self.kinds[part] != "inline"):
                mark = self._hold(part)
                if mark is None:
                    atoms = part if isinstance(part, list) else [part]
                    if last is None or self._blank or waiting:
                        waiting += atoms
                    else:
                        self._attach(last, atoms)
                    continue
            place = len(self._said)
            number = self._open(None, waiting, []) if waiting else None
            waiting = []
            if is_text or mark:
                self._say(mark or part)
            else:
                own = self._open(part, [], [])
                self._write(part.children)
                self._close(own)
            if number is not None:
                self._close(number)
            last = place + (self._said[place] == " ")
        if waiting and last is not None:
            ends_blank = waiting[-1] == " "
            atoms = [" "] * self._blank + waiting[: len(waiting) - ends_blank]
            self._blank = False
            self._attach(last, atoms)
            self._blank = ends_blank

    def _cut(self, nodes: Iterable[PageElement]) -> Iterator[PageElement | Nodes | str]:
        """Words and blanks of text, elements, and lists of what is one word that stays."""
        for part in self._join(nodes):
            if type(part) is not str:
                yield part
                continue
            for piece in _PART.findall(part):
                done = 0
                for kept in _KEPT.finditer(piece):
                    if piece[done : kept.start()]:
                        yield piece[done : kept.start()]
                    yield [kept[0]]
                    done = kept.end()
                if piece[done:]:
                    yield piece[done:]

    def _join(self, nodes: Iterable[PageElement]) -> list[PageElement | Nodes | str]:
        """Text, elements, and words of which a part is raised, or stays, as lists."""
        parts: list[PageElement | Nodes | str] = []
        for node in nodes:
            kind = self.kinds[node]
            if kind == "reading":
                continue
            last = parts[-1] if parts else None
            if kind == "text":
                text = str(node)
                if (word := _WORD_BEHIND.match(text)) and self._is_part(last):
                    parts[-1] = [*(last if isinstance(last, list) else [last]), word[0]]
                    text = text[word.end() :]
                if text:
                    parts.append(text)
            elif not self._is_part(node) or last is None:
                parts.append(node)
            elif isinstance(last, list):
                last.append(node)
            elif type(last) is str:
                word = _WORD_BEFORE.search(last, max(0, len(last) - _LONGEST))
                if word:
                    parts[-1:] = [last[: word.start()]] if word.start() else []
                    parts.append([word[0], node])
                else:
                    parts.append(node)
            elif kind == "raised" and self.kinds[last] in ("inline", "word", "raised"):
                parts[-1] = [last, node]
            else:
                parts.append(node)
        return parts

    def _is_part(self, part: PageElement | Nodes | str | None) -> bool:
        """Whether letters that touch it are of the same word."""
        if part is None or type(part) is str:
            return False
        return isinstance(part, list) or self.kinds[part] in ("raised", "word")

    def _hold(self, part: PageElement | Nodes) -> str | None:
        """The character for a word that stays; None if it has no words, or there is no more."""
        is_word = isinstance(part, list) or self.kinds[part] != "atom"
        mark = next(self.page.free, None) if is_word else None
        if mark:
            self._held[mark] = part if isinstance(part, list) else [part]
        return mark

    def _say(self, text: str) -> None:
        for mark in set(text) & self.page.literals.keys():
            self._held[mark] = [mark]
        if self._blank and self._said:
            self._said.append(" ")
        self._said += [*self._opens, text]
        self._opens, self._blank, self._behind = [], False, None

    def _open(self, tag: Tag | None, before: Nodes, behind: Nodes) -> int:
        self._pairs.append((tag, before, behind))
        self._opens.append(f"<g{len(self._pairs) - 1}>")
        return len(self._pairs) - 1

    def _close(self, number: int) -> None:
        self._said.append(f"</g{number}>")
        self._behind = None

    def _attach(self, start: int, nodes: Nodes) -> None:
        """Put nodes behind what is said from a place on."""
        if self._behind is None:
            self._behind = list(nodes)
            self._pairs.append((None, [], self._behind))
            self._said.insert(start, f"<g{len(self._pairs) - 1}>")
            self._said.append(f"</g{len(self._pairs) - 1}>")
        else:
            self._behind += nodes
