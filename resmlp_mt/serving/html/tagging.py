"""Tags put around the words of a translation: each gets those of the word it was made from."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from bs4 import BeautifulSoup, NavigableString, Tag
from bs4.element import PageElement

from resmlp_mt.inference.alignment import weigh_words
from resmlp_mt.inference.hypotheses import Hypothesis
from resmlp_mt.serving.html.runs import Run, Tags, Word
from resmlp_mt.serving.limits import AnswerTooLarge

_PUNCTUATION = re.compile(r"[.,;:!?…。，；：！？)\]»”\"']+$")


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


class Tagger:
    """Makes nodes of translations, with the tags of the source.

    Args:
        soup: Makes tags.
        room: Characters that tags may take. Where words change their places, one tag around them
            becomes several.
    """

    def __init__(self, soup: BeautifulSoup, room: float):
        self.soup, self.room = soup, room

    def render(self, run: Run, translated: Translated) -> list[PageElement]:
        """The nodes of a translation of a run.

        Raises:
            AnswerTooLarge: If tags take more room than there is.
        """
        # A word or its end, its tags, and whether a space comes before it.
        units: list[tuple[str, Tags, bool]] = []
        made: dict[int, list[int]] = {}  # the units of each word of the source
        sentences, end = [], 0
        for sentence, (_, hypothesis) in enumerate(translated.parts):
            words, said = _find_sentence(run.words, sentence), hypothesis.text.strip()
            begin, first = translated.text.index(said, end), len(units)
            parted = end < begin and first > 0
            end = begin + len(said)
            targets = said.split()
            made_from = _find_sources(hypothesis, len(words), len(targets))
            marks = {
                c: i for i, j in enumerate(words) for c in run.words[j].text if c in run.marked
            }
            for number, (target, source) in enumerate(zip(targets, made_from, strict=True)):
                source = next((marks[c] for c in target if c in marks), source)
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
        said = {character for text, *_ in units for character in text}
        for mark in run.marked.keys() - said:
            run.place(mark)
        atoms: dict[int, list[tuple[list[PageElement], Tags, bool]]] = {}
        for source, *placed in run.placed:
            atoms.setdefault(before[len(run.words) - source], []).append(tuple(placed))
        return self._draw(units, atoms, {mark: node for mark, (node, _) in run.marked.items()})

    def _draw(
        self,
        units: list,
        atoms: dict[int, list[tuple[list[PageElement], Tags, bool]]],
        marked: dict[str, PageElement],
    ) -> list[PageElement]:
        """The tree of words, their tags, and what stands between them and for their marks."""
        # The tags of the source that are open, and the copies of them, below one that has none.
        opened, copies = [], [self.soup.new_tag("top")]
        for number, (text, tags, spaced) in enumerate([*units, ("", (), False)]):
            word = list(_draw_word(text, marked)), tags, False
            for nodes, around, touches in (*atoms.get(number, ()), word):
                # An atom stays in those of its tags that are open or that the next word has.
                path = max(_share(around, opened), _share(around, tags), key=len)
                same = len(_share(path, opened))
                del opened[same:], copies[same + 1 :]
                if spaced and not touches:
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


def _draw_word(text: str, marked: dict[str, PageElement]) -> Iterator[PageElement]:
    """The nodes of a word: text, and what its marks stand for, once each."""
    for is_mark, part in groupby(text, marked.__contains__):
        if not is_mark:
            yield NavigableString("".join(part))
            continue
        for mark in part:
            node, marked[mark] = marked[mark], NavigableString("")
            yield node


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


def _find_sentence(words: list[Word], number: int) -> range:
    """Which words are those of a sentence."""
    sentence = attrgetter("sentence")
    return range(
        bisect_left(words, number, key=sentence), bisect_right(words, number, key=sentence)
    )


def _keep_all_tags(
    units: list,
    made: dict[int, list[int]],
    words: list[Word],
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
