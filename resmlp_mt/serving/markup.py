"""HTML whose text is translated while its markup stays, by Beautiful Soup and alignments.

A paragraph is translated as a whole, without the tags within it. Each word of the translation then
gets the tags of the word that it was made from, as the attention says: so a tag moves with its
words. It stays in its sentence, where sentences are translated apart.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter, itemgetter

from bs4 import NavigableString, ParserRejectedMarkup, Tag
from bs4.element import PageElement

from resmlp_mt.inference.alignment import weigh_words
from resmlp_mt.inference.hypotheses import Hypothesis
from resmlp_mt.serving.html_parser import parse_html
from resmlp_mt.serving.limits import AnswerTooLarge

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
# What stands in a sentence too, but holds text of its own.
_APART = frozenset(["button", "select"])
# How the words before are read: of no use beside a translation.
_READINGS = frozenset(["rt", "rp", "rtc"])
# What people read, or hear, of a tag beside its text.
_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label")
_PUNCTUATION = re.compile(r"[.,;:!?…。，；：！？)\]»”\"']+$")

# Deeper documents are made to do harm.
_DEEPEST = 100
# So are those with more beginnings that have no end: the parser looks for each to the last letter.
_MOST_OPEN = 1000
_ENDS = (("<!--", "-->"), ("<![", "]]>"), ("<![", "]>"))

_Tags = tuple[Tag, ...]


def _is_kept(tag: Tag) -> bool:
    """Whether its author wants it left alone."""
    return tag.get("translate") == "no" or "notranslate" in tag.get_attribute_list("class")


class _Kinds:
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
        kept = _is_kept(tag)
        if tag.name in _ATOMS or (kept and tag.name in _INLINE | _APART):
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


@dataclass(frozen=True)
class Translated:
    """A translation of a text.

    Attributes:
        text: All of it.
        parts: Of what was translated at once the source, with the white space around it, and the
            translation with its attention. The sources joined are the text.
    """

    text: str
    parts: Sequence[tuple[str, Hypothesis]]


@dataclass
class _Word:
    """A word, and the tags around it, outermost first.

    Attributes:
        text: The word.
        tags: Those around most of it.
        parts: Those around each of its parts. Without blanks a whole sentence is a word.
        sentence: The number of that, as it was translated.
    """

    text: str
    tags: _Tags
    parts: list[_Tags]
    sentence: int


@dataclass
class _Run:
    """Neighbours in the tree that are translated together."""

    nodes: list[PageElement]
    kinds: _Kinds
    chunks: list[tuple[int, str, _Tags]] = field(default_factory=list)  # by place in `raw`
    size: int = 0
    atoms: list[tuple[int, PageElement, _Tags]] = field(default_factory=list)  # so too
    # The same with the spaces around them, by the word that follows.
    placed: list[tuple[int, list[PageElement], _Tags]] = field(default_factory=list)

    def __post_init__(self):
        for node in self.nodes:
            self._read(node, ())
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
            self.placed.append((word, nodes, tags))

    def _read(self, node: PageElement, tags: _Tags) -> None:
        kind = self.kinds[node]
        if kind == "text":
            self.chunks.append((self.size, str(node), tags))
            self.size += len(node)
        elif kind == "inline":
            for child in node.children:
                self._read(child, (*tags, node))
        elif kind != "reading":
            self.atoms.append((self.size, node, tags))

    def _word(self, start: int, end: int, sentence: int) -> _Word:
        first = bisect_right(self.chunks, start, key=itemgetter(0)) - 1
        inside = []  # letters, how many tags, and which
        last = bisect_left(self.chunks, end, key=itemgetter(0))
        for place, text, tags in self.chunks[first:last]:
            part = text[max(start - place, 0) : end - place]
            if part:
                inside.append((sum(map(str.isalnum, part)), len(tags), tags))
        most, parts = max(inside, key=itemgetter(0, 1))[2], [tags for *_, tags in inside]
        return _Word(self.raw[start:end], most, parts, sentence)


class Markup:
    """An HTML document or a part of one.

    Attributes:
        texts: What there is to translate, white space collapsed.

    Args:
        html: Its source.

    Raises:
        ValueError: If it is nested too deeply, too much in it has no end, or it cannot be parsed.
    """

    def __init__(self, html: str):
        # No tag begins behind the last that ends. The parser would look for the end of each.
        cut = html.rfind(">") + 1
        html = html[:cut] + html[cut:].replace("<", "&lt;")
        for begin, end in _ENDS:
            if html.count(begin, html.rfind(end) + 1) > _MOST_OPEN:
                raise ValueError(f"the HTML has more than {_MOST_OPEN:,} {begin} without {end}")
        try:
            self.soup = parse_html(html)
        except ParserRejectedMarkup:
            raise ValueError("the HTML has a <! that the parser does not know") from None
        except ValueError:  # Python reads no longer ones
            raise ValueError("the HTML has a &# with thousands of digits") from None
        depths = {id(self.soup): 0}
        for node in self.soup.descendants:
            depths[id(node)] = 1 + depths[id(node.parent)]
            if depths[id(node)] > _DEEPEST:
                raise ValueError(f"the HTML is more than {_DEEPEST} tags deep")
        self.kinds, self.runs = _Kinds(), []
        self._collect(self.soup)
        self.attributes = list(_find_attributes(self.soup))
        self.texts = [run.text for run in self.runs]
        self.texts += [" ".join(tag[name].split()) for tag, name in self.attributes]

    def put(self, translations: Sequence[Translated], room: float = math.inf) -> str:
        """The document with these in the place of its texts. It can be called once.

        Args:
            translations: One of each text.
            room: Characters that the tags of words may take. Where words change their places, one
                tag around them becomes several.

        Raises:
            AnswerTooLarge: If they take more.
        """
        count, self.room = len(self.runs), room
        # Attributes first, before the tags are copied.
        of_attributes = zip(self.texts[count:], translations[count:], strict=True)
        for (tag, name), (text, translated) in zip(self.attributes, of_attributes, strict=True):
            if translated.text != text:
                tag[name] = translated.text
        for run, translated in zip(self.runs, translations[:count], strict=True):
            # Nothing was translated, as of a zero-width blank or of a number with hard blanks.
            if not translated.parts or translated.text == run.text:
                continue
            run.cut([source for source, _ in translated.parts])
            before = run.raw[: len(run.raw) - len(run.raw.lstrip())]
            place = NavigableString(before)
            run.nodes[0].insert_before(place)
            for node in run.nodes:
                node.extract()
            after = NavigableString(run.raw[run.end :])
            place.insert_after(*self._render(run, translated), after)
        return str(self.soup)

    def _collect(self, parent: Tag) -> None:
        if parent.name == "option" and "value" not in parent.attrs:
            # A form sends the text of such an option, and must send the same as before.
            own = [str(child) for child in parent.children if self.kinds[child] == "text"]
            parent["value"] = " ".join("".join(own).split())
        waiting, nodes = [*parent.children, None], []
        for node in waiting:
            kind = "wall" if node is None else self.kinds[node]
            if kind not in ("block", "wall"):
                nodes.append(node)
                continue
            self._collect_run(nodes)
            nodes = []
            if kind == "block":
                self._collect(node)

    def _collect_run(self, nodes: list[PageElement]) -> None:
        run = _Run(nodes, self.kinds)
        if run.text:
            self.runs.append(run)
        for _, atom, _ in run.atoms:
            if self.kinds[atom] == "apart":
                self._collect(atom)

    def _render(self, run: _Run, translated: Translated) -> list[PageElement]:
        # A word or its end, its tags, and whether a space comes before it.
        units: list[tuple[str, _Tags, bool]] = []
        made: dict[int, list[int]] = {}  # the units of each word of the source
        sentences, end = [], 0
        for sentence, (_, hypothesis) in enumerate(translated.parts):
            words, said = _find_sentence(run.words, sentence), hypothesis.text.strip()
            begin, first = translated.text.index(said, end), len(units)
            parted = end < begin and first > 0
            end = begin + len(said)
            targets = said.split()
            made_from = _find_sources(hypothesis, len(words), len(targets))
            for number, (target, source) in enumerate(zip(targets, made_from, strict=True)):
                word, at = run.words[words[source]], len(units)
                # A full stop that the translation adds belongs to no tag.
                added = number == len(targets) - 1 and not _PUNCTUATION.search(word.text)
                tail = () if added else word.parts[-1]
                stop = _PUNCTUATION.search(target) if tail != word.tags else None
                cut = stop.start() if stop and stop.start() else len(target)
                units.append((target[:cut], word.tags, number > 0 or parted))
                if cut < len(target):
                    units.append((target[cut:], tail, False))
                made.setdefault(words[source], []).extend(range(at, len(units)))
            sentences.append((words, range(first, len(units))))
        _keep_all_tags(units, made, run.words, sentences)
        starts = {source: places[0] for source, places in made.items()}
        # Of each word of the source, from the last on: its unit, or that of one behind it.
        before = [len(units)]
        for source in reversed(range(len(run.words))):
            before.append(starts.get(source, before[-1]))
        atoms: dict[int, list[tuple[list[PageElement], _Tags]]] = {}
        for source, nodes, tags in run.placed:
            atoms.setdefault(before[len(run.words) - source], []).append((nodes, tags))
        return self._draw(units, atoms)

    def _draw(
        self, units: list, atoms: dict[int, list[tuple[list[PageElement], _Tags]]]
    ) -> list[PageElement]:
        """The tree of words, their tags, and what stands between them."""
        # The tags of the source that are open, and the copies of them, below one that has none.
        opened, copies = [], [self.soup.new_tag("top")]
        for number, (text, tags, spaced) in enumerate([*units, ("", (), False)]):
            word = [NavigableString(text)], tags
            for nodes, around in (*atoms.get(number, ()), word):
                # An atom stays in those of its tags that are open or that the next word has.
                path = max(_share(around, opened), _share(around, tags), key=len)
                same = len(_share(path, opened))
                del opened[same:], copies[same + 1 :]
                if spaced:
                    copies[-1].append(NavigableString(" "))
                    spaced = False
                for tag in path[same:]:
                    self.room -= _measure(tag)
                    if self.room < 0:
                        raise AnswerTooLarge
                    copy = self.soup.new_tag(tag.name, attrs=dict(tag.attrs))
                    copies[-1].append(copy)
                    opened.append(tag)
                    copies.append(copy)
                copies[-1].extend(nodes)
        return [node.extract() for node in list(copies[0].children)]


def _find_attributes(parent: Tag) -> Iterator[tuple[Tag, str]]:
    """The tags below another, and their attributes, that are to be translated."""
    for tag in parent.find_all(True, recursive=False):
        if not _is_kept(tag):
            if tag.name not in ("link", "style"):  # whose title is a name
                yield from ((tag, name) for name in _ATTRIBUTES if tag.get(name, "").strip())
            yield from _find_attributes(tag)


def _measure(tag: Tag) -> int:
    """About the characters of a tag without what it holds."""
    size = len(tag.name)
    for name, value in tag.attrs.items():
        size += len(name) + (len(value) if isinstance(value, str) else sum(map(len, value)))
    return size


def _share(tags: Sequence[Tag], others: Sequence[Tag]) -> Sequence[Tag]:
    """The outermost tags, as far as both have them."""
    same = 0
    while same < min(len(tags), len(others)) and tags[same] is others[same]:
        same += 1
    return tags[:same]


def _find_sources(hypothesis: Hypothesis, sources: int, targets: int) -> list[int]:
    """The source word that each word of the translation was made from."""
    beside = [i * sources // targets for i in range(targets)]
    if not hypothesis.attention:
        return beside
    shares = weigh_words(hypothesis.attention[0], targets, sources)
    return [
        int(row.argmax()) if row.any() else place for row, place in zip(shares, beside, strict=True)
    ]


def _find_sentence(words: list[_Word], number: int) -> range:
    """Which words are those of a sentence."""
    sentence = attrgetter("sentence")
    return range(
        bisect_left(words, number, key=sentence), bisect_right(words, number, key=sentence)
    )


def _keep_all_tags(
    units: list,
    made: dict[int, list[int]],
    words: list[_Word],
    sentences: list[tuple[range, range]],
) -> None:
    """Give tags that were left out a place: around all that their word became, or near there."""
    kept = {id(tag) for _, tags, _ in units for tag in tags}
    for numbers, room in sentences:
        room = room or range(len(units))
        for i, number in enumerate(numbers):
            # By identity: Beautiful Soup calls tags equal that look alike.
            lost = {id(t): t for tags in words[number].parts for t in tags if id(t) not in kept}
            if not room or not lost:
                continue
            for place in made.get(number) or [room[i * len(room) // len(numbers)]]:
                text, tags, spaced = units[place]
                units[place] = text, (*tags, *lost.values()), spaced
            kept.update(lost)
