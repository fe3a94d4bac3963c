"""Text cut into what a model translates at once."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise, repeat

import regex

from resmlp_mt.inference.alignment import count_words
from resmlp_mt.inference.glossary import Wanted
from resmlp_mt.text.code import join_code
from resmlp_mt.text.endings import is_item
from resmlp_mt.text.entities import Spelled
from resmlp_mt.text.fitting import Ruler
from resmlp_mt.text.literals import find_literals
from resmlp_mt.text.marks import find_pictures, holds_text
from resmlp_mt.text.messages import Message
from resmlp_mt.text.numbers import find_grouped
from resmlp_mt.text.punctuation import (
    CLOSERS,
    COMMAS,
    ENDS,
    UNSEEN,
    UNSPACED,
    Place,
    cut_at,
    join_places,
    leave_out,
)
from resmlp_mt.text.spans import Span, take_spans
from resmlp_mt.text.stand_ins import (
    Knowledge,
    count_names,
    find_unreadable,
    is_made_up,
    name_words,
    put_in,
)

LINE_ENDS = "\n\u2028\u2029"
_LINE = re.compile(f"[^{LINE_ENDS}]*[{LINE_ENDS}]|[^{LINE_ENDS}]+")
# In subwords, and more than any word has. A longer one is data, or a key that was held down: to
# translate it takes as long as pages of text. A character has four bytes at most, each a subword.
_LONGEST_WORD = 100
_LONG_WORD = re.compile(f"[^\\s\u200b{UNSPACED}]{{{_LONGEST_WORD // 4},}}")
# Before a gap without white space. Others are within a word of a language that has blanks between
# words: within a long address.
_PARTED = regex.compile(f"(?V1)[{ENDS}{COMMAS}{UNSPACED}{CLOSERS}…—]")


@dataclass(frozen=True)
class Stripped:
    """A text without its emphasis, links and tags.

    Attributes:
        text: In its own case.
        spans: What was taken off. It is put around words of the translation.
        words: The number of each of its words in the text with them.
    """

    text: str
    spans: tuple[Span, ...]
    words: tuple[int, ...]


@dataclass(frozen=True)
class Composed:
    """A text that is translated as one or more others, which are put together again.

    Attributes:
        form: What puts them together: a message of ICU, or characters that HTML spells out.
        parts: The segments of each of its texts.
    """

    form: Message | Spelled
    parts: "tuple[tuple[Segment, ...], ...]"

    @property
    def segments(self) -> "list[Segment]":
        """Those of all its texts, in order."""
        return [segment for part in self.parts for segment in part]


@dataclass(frozen=True)
class Segment:
    """A part of a source text that is translated at once.

    Attributes:
        text: With the white space around it.
        pieces: Its subwords, as it is read; none of code.
        read: The text as it is read: in lower case where it is in capitals, and stripped.
        capitals: Whether it is in capitals, and read in lower case.
        stripped: The text without its emphasis, links and tags, if it has any.
        code: Whether it is a block of code, or too long for a word. Both stay as they are.
        is_item: Whether it needs no final stop, as one that is of a heading, an item or a row.
        is_made_up: Whether a translation would be: the model cannot read most of it, or all stays.
        named: The segment with names in the place of words whose translation is known, if any.
        names: In `named` the name of each of these translations.
        needs_names: Whether the model cannot read some of these words.
        terms: What its translation shall hold for the terms of a glossary in it.
        without: The segment without the terms that it may do without, if it has such.
        composed: What is translated in the place of the text, if it is code with words in it.
    """

    text: str
    pieces: Sequence[str]
    read: str
    capitals: bool = False
    stripped: Stripped | None = None
    code: bool = False
    is_item: bool = False
    is_made_up: bool = False
    named: "Segment | None" = None
    names: Mapping[str, str] = field(default_factory=dict)
    needs_names: bool = False
    terms: tuple[Wanted, ...] = ()
    without: "Segment | None" = None
    composed: Composed | None = None

    @property
    def plain(self) -> str:
        """The text without its emphasis, links and tags, in its own case."""
        return self.stripped.text if self.stripped else self.text

    @property
    def holds_text(self) -> bool:
        """Whether there are letters in it, and it is no code."""
        return not self.code and holds_text(self.read)

    @property
    def is_translated(self) -> bool:
        """Whether it does not stay as it is."""
        return self.holds_text and not self.is_made_up


def split_text(
    text: str,
    cut: Callable[[str], list[str]],
    find_pieces: Callable[[str], Sequence[str]],
    longest: int,
    sentences: bool,
    read: Callable[[str], str] = str,
    keep_code: bool = False,
) -> list[Segment]:
    """Cut a text into segments of at most `longest` subwords.

    Lines are kept apart. A line is cut no further than it must be: into sentences, a sentence into
    clauses, a clause between words, a word between subwords, or else between characters with all
    their marks. Sentences are kept apart too; smaller parts fill a segment. A character of more
    subwords than fit loses the last of them. What is too long for a word, in a script that has
    blanks between words, is no language: it stays whole, as code does.

    Args:
        text: Raw text.
        cut: Cuts a line into sentences that joined are the line.
        find_pieces: The subwords of a text, which is without white space around it.
        longest: Subwords that fit the model.
        sentences: Cut lines into sentences that fit as they are, too.
        read: How a sentence, or a line that is left whole, is read: as `read_capitals`, with as
            many characters as it has.
        keep_code: Leave blocks of code whole, each a segment of its own, of any length.

    Returns:
        The segments, in order; joined they are the text. None of a text without subwords and code.
    """
    ruler = Ruler(find_pieces, longest)

    def is_endless(part: str) -> bool:
        return ruler.measure(part) > max(longest, _LONGEST_WORD)

    def cut_line(line: str) -> Iterator[tuple[str, bool]]:
        """Its parts, and whether each stays as it is. The others are as they are read."""
        words = [word for word in _LONG_WORD.finditer(line) if is_endless(word[0])]
        for part in cut_at(line, (place for word in words for place in word.span())):
            if _LONG_WORD.fullmatch(part) and is_endless(part):
                yield part, True
                continue
            apart = sentences or not ruler.fits(read(part))
            for piece in map(read, cut(part) if apart else [part]):
                yield from zip(ruler.cut(piece), repeat(False))

    # What each segment is joined of, as it is read, and whether it stays as it is.
    found: list[tuple[list[str], bool]] = []
    blank: list[str] = []  # what comes before the first
    lines = _LINE.findall(text)
    for line, is_code in join_code(lines) if keep_code else zip(lines, repeat(False)):
        for part, stays in [(line, True)] if is_code else cut_line(line):
            if stays or ruler.measure(part):
                found.append(([*blank, part], stays))
                blank = []
            else:
                (found[-1][0] if found else blank).append(part)
    texts = ["".join(parts) for parts, _ in found]
    ends = accumulate(map(len, texts), initial=0)
    return [
        Segment(
            text[start:end],
            () if stays else ruler.find_pieces(part)[:longest],
            part,
            capitals=part != text[start:end],
            code=stays,
        )
        for (start, end), part, (_, stays) in zip(pairwise(ends), texts, found, strict=True)
    ]


def take_off_spans(
    segment: Segment, find_pieces: Callable[[str], Sequence[str]], read: Callable[[str], str]
) -> Segment:
    """A segment that is read without its emphasis, links and tags.

    Args:
        segment: Of what `split_text` returned.
        find_pieces, read: As for `split_text`.
    """
    if segment.code or not (plain := take_spans(segment.text)).spans:
        return segment
    said = read(plain.text)
    return replace(
        segment,
        pieces=find_pieces(said.strip()),
        read=said,
        capitals=said != plain.text,
        stripped=Stripped(plain.text, plain.spans, tuple(count_words(segment.text, plain.places))),
    )


def name_fixed(
    segment: Segment,
    find_pieces: Callable[[str], Sequence[str]],
    model: Knowledge,
    longest: int,
    languages: tuple[str, str],
    terms: Sequence[tuple[Place, str]] = (),
    blanks: bool = True,
) -> Segment:
    """A segment with names in the place of words whose translation is known, beside it.

    Words that the model cannot read, literals, and pictures within the sentence stay as they are.
    Numbers in groups of digits become what the target language writes. Terms of a glossary become
    what that says.

    Args:
        segment: Of what `split_text` or `take_off_spans` returned.
        find_pieces, longest: As for `split_text`.
        model: What it knows.
        languages: Of source and target.
        terms: Places of `read`, in order, and the translation of each.
        blanks: Whether what stays may have blanks in it, as `{{ name | upper }}`.
    """
    text = segment.plain
    if segment.code:
        return segment
    known = [place for place, _ in terms]
    unreadable = leave_out(find_unreadable(segment.read, model), known)
    if is_made_up(text, unreadable):
        return replace(segment, is_made_up=True)
    literals, pictures = find_literals(text, blanks), find_pictures(text)
    stays = leave_out(join_places([*unreadable, *literals, *pictures]), known)
    numbers = dict(find_grouped(text, *languages))
    fixed = [(place, text[slice(*place)]) for place in stays]
    fixed += [(place, numbers[place]) for place in leave_out(numbers, [*stays, *known])]
    if not (fixed := sorted([*fixed, *terms])):
        return segment
    places = [place for place, _ in fixed]
    if not terms and not holds_text(put_in(text, places, repeat(""))):
        return replace(segment, is_made_up=True)  # nothing is left to translate
    names = name_words(text, (word for _, word in fixed))
    read = put_in(segment.read, places, (names.get(word, word) for _, word in fixed))
    pieces = find_pieces(read.strip())
    segment = replace(segment, needs_names=bool(unreadable))
    # A name that touches letters or digits would not be found again.
    is_found = count_names(read, names) == len(fixed)
    if len(pieces) > longest or not is_found:
        return replace(segment, is_made_up=segment.needs_names)
    return replace(segment, named=replace(segment, read=read, pieces=pieces, names=names))


def mark_items(segments: list[Segment], all_are: bool = False) -> list[Segment]:
    """The segments of a text, marked where their line is a heading, an item or a row.

    Marked too are those that end within their line. What lacks a stop there is a part of a
    sentence, which was cut at a mark or at a comma.

    Args:
        segments: As `split_text` returned them.
        all_are: Every line is one.
    """
    marked = []
    for line in group_lines(segments):
        is_one = all_are or is_item("".join(segment.text for segment in line))
        is_one = is_one or any(segment.text.strip() == "|" for segment in line)  # forms of a plural
        inside = len(line) if is_one else len(line) - 1
        marked += [replace(segment, is_item=True) for segment in line[:inside]] + line[inside:]
    return marked


def split_lines(text: str) -> list[str]:
    """The lines of a text, each with its end and the blank lines around it."""
    lines: list[str] = []
    for line in _LINE.findall(text):
        if lines and not (line.strip() and lines[-1].strip()):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def group_lines(segments: list[Segment]) -> list[list[Segment]]:
    """The segments of each line of a text."""
    lines: list[list[Segment]] = [[]]
    for segment in segments:
        lines[-1].append(segment)
        behind = segment.text[len(segment.text.rstrip()) :]
        if any(end in behind for end in LINE_ENDS) and segment is not segments[-1]:
            lines.append([])
    return lines


def list_pieces(segments: Iterable[Segment]) -> Iterator[str]:
    """The subwords of those segments that hold text; of composed ones, those of their parts."""
    for segment in segments:
        if segment.holds_text:
            yield from segment.pieces
        if segment.composed:
            yield from list_pieces(segment.composed.segments)


def count_sentences(segment: Segment) -> int:
    """How many texts are translated for a segment: of a composed one its parts, else one."""
    return sum(map(count_sentences, segment.composed.segments)) or 1 if segment.composed else 1


def find_spaces(segments: list[Segment], usual: str) -> list[str]:
    """The white space before, between and after segments.

    Args:
        segments: As `split_text` returned them; one at least.
        usual: What the language puts between sentences, in the place of nothing or a blank.
    """
    texts = [segment.text for segment in segments]
    before = [text[: len(text) - len(text.lstrip())] for text in texts]
    after = [text[len(text.rstrip()) :] for text in texts]
    between = []
    for x, y, (one, other) in zip(after, before[1:], pairwise(segments), strict=False):
        gap, said = x + y, [one.is_translated, other.is_translated]
        if gap:
            parted = gap in (" ", "\u3000") and any(said)
        else:
            parted = all(said) and _is_parted(one.text, other.text)
        between.append(usual if parted else gap)
    return [before[0], *between, after[-1]]


def _is_parted(before: str, after: str) -> bool:
    """Whether more than a cut within a word parts two texts."""
    last = (before.rstrip(UNSEEN) or before)[-1]
    if last in ".!?":  # within an address, a small letter or a digit follows
        return not re.match("[0-9a-z]", after)
    return bool(_PARTED.match(last))
