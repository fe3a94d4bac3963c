"""A text that a user gives, as what a model translates at once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat

from resmlp_mt.inference.codec import TextCodec
from resmlp_mt.inference.glossary import Glossary
from resmlp_mt.inference.guides import Line, divide_begun
from resmlp_mt.inference.options import ReadingOptions
from resmlp_mt.inference.segments import (
    Composed,
    Segment,
    mark_items,
    name_fixed,
    split_text,
    take_off_spans,
)
from resmlp_mt.text import sentences
from resmlp_mt.text.capitals import read_capitals, write_capitals
from resmlp_mt.text.entities import Spelled, read_spelled
from resmlp_mt.text.marks import cut_marks, holds_text
from resmlp_mt.text.messages import Message, find_messages, read_message
from resmlp_mt.text.punctuation import Place
from resmlp_mt.text.stand_ins import ALPHABET, put_in

# Stands for a message of ICU while a text is cut into sentences: a character of private use.
_HOLE = "\U000fffff"
_IN_CODE = re.compile(rf"`|[\"']{_HOLE}|{_HOLE}[\"']")


class Reader:
    """Makes segments of text.

    Args:
        codec: The model's dictionaries and subwords.
        longest: Subwords that the model reads at once, without the end.
    """

    def __init__(self, codec: TextCodec, longest: int):
        self.codec, self.longest = codec, longest

    def begin(
        self,
        text: str,
        prefix: str,
        words: Sequence[str],
        reading: ReadingOptions,
        glossary: Glossary | None = None,
    ) -> Line:
        """A line in the parts that are translated at once, of which a prefix may have some.

        Args:
            text: The line.
            prefix: What its translation begins with.
            words: What its translation shall hold.
            reading: How lines are read.
            glossary: Terms that are translated as it says.
        """
        segments = self.split(
            text,
            False if words else reading.split_sentences,  # words may stand in any sentence
            reading.recase and not (prefix or words),
            begun=bool(prefix),
            attention=reading.attention,
        )
        if glossary:
            segments = [
                self.name_terms(segment, glossary, reading.attention) for segment in segments
            ]
        kept, rest = divide_begun(prefix, segments, self.codec.target_language)
        return Line(text, segments, kept, rest, words)

    def split(
        self,
        text: str,
        split_sentences: bool | None = None,
        recase: bool = True,
        begun: bool = False,
        is_item: bool = False,
        attention: bool = False,
    ) -> list[Segment]:
        """Split a text into what is translated at once. Joined, the parts are the text.

        Lines are translated apart. Those that are too long for the model are cut in any case. Those
        that are longer than nearly all that it was trained on are cut too, unless `split_sentences`
        is False: of such lines it would leave out parts.

        Args:
            text: Raw text.
            split_sentences: Cut lines into sentences, and marks off from them, as emoji, bullets
                and tabs. Leave blocks of code as they are. Default: where the model wants it, as
                most do that were trained on single ones.
            recase: Read what is in capitals in lower case, and translate it to capitals. Read
                emphasis, links and tags within a sentence as plain words, and put them around the
                words of the translation that come from these. Give headings, items of lists and
                rows of tables no final stop that they lack. Keep words that the model cannot read,
                as those in another script, out of what it translates, and words that are the same
                in all languages, as addresses.
            begun: The translation was begun elsewhere, so that sentences that fit the model stay
                whole.
            is_item: Every line is such a heading or item.
            attention: Whether somebody asks for that, which counts words: of what stays none has
                blanks in it then.

        Returns:
            The parts, in order; none of a blank text.
        """
        card, longest = self.codec.card, self.longest
        if split_sentences is not False and not begun and card.usual_length:
            longest = min(longest, card.usual_length)
        if split_sentences is None:
            split_sentences = card.split_sentences
        if recase and not begun and _HOLE not in text and (places := find_messages(text)):
            reading = {"split_sentences": split_sentences, "attention": attention}
            return list(self._split_messages(text, places, is_item, **reading))
        read, named = self._read if recase else str, recase and not begun and self._reads_names

        def cut_finely(line: str) -> list[str]:
            return cut_marks(self._cut_line(line), within=not named)

        segments = split_text(
            text,
            self._cut_line if begun else cut_finely,
            self.codec.split,
            longest,
            split_sentences,
            read,
            keep_code=split_sentences,
        )
        if begun or not recase:
            return segments
        segments = mark_items(segments, is_item)
        codec = self.codec
        languages = codec.source_language, codec.target_language
        if not attention:
            segments = [self._read_spelled(segment, split_sentences) for segment in segments]
        if all(map(sentences.parts_sentences_by_blanks, languages)):
            segments = [take_off_spans(segment, codec.split, read) for segment in segments]
        return [self._name(segment, attention) for segment in segments] if named else segments

    def _split_messages(
        self, text: str, places: list[Place], is_item: bool, **reading: bool
    ) -> Iterator[Segment]:
        """The parts of a text with messages of ICU. A sentence that has one is a part by itself.

        It stays as it is where somebody asks for attention, which counts the words of one sentence.
        """
        messages = iter([text[slice(*place)] for place in places])
        for segment in self.split(put_in(text, places, repeat(_HOLE)), is_item=is_item, **reading):
            if _HOLE not in segment.text:
                yield segment
                continue
            whole = re.sub(_HOLE, lambda _: next(messages), segment.text)
            # In code, in attributes of tags and in JSON a program reads what is around a message.
            stays = segment.code or reading["attention"] or _IN_CODE.search(segment.text)
            message = None if stays else read_message(whole.strip())
            composed = message and self._compose(message, is_item=True, **reading)
            yield Segment(whole, (), whole, code=True, composed=composed)

    def _compose(self, form: Message | Spelled, **reading: bool) -> Composed:
        return Composed(form, tuple(tuple(self.split(text, **reading)) for text in form.texts))

    def _read_spelled(self, segment: Segment, split_sentences: bool) -> Segment:
        """The segment as one that is translated with the characters that HTML spells out."""
        if segment.code or not (spelled := read_spelled(segment.text.strip())):
            return segment
        if not holds_text(*spelled.texts):
            return replace(segment, code=True)
        composed = self._compose(spelled, split_sentences=split_sentences, is_item=segment.is_item)
        return Segment(segment.text, (), segment.text, code=True, composed=composed)

    def name(self, segment: Segment, attention: bool) -> Segment:
        """The segment with names for what stays as it is, if the model can read names.

        Args:
            segment: Of what `split` returned.
            attention: As for `split`.
        """
        return self._name(segment, attention) if self._reads_names else segment

    def name_terms(self, segment: Segment, glossary: Glossary, attention: bool) -> Segment:
        """The segment with names for the terms of a glossary too, if it has any.

        One of which not all terms can be named has no names at all. Its search is led instead.

        Args:
            segment: Of what `split` returned.
            glossary: The terms.
            attention: Whether somebody asks for that, which counts words: a term of several words
                gets no name then.
        """
        if segment.composed:
            parts = tuple(
                tuple(self.name_terms(part, glossary, attention) for part in parts)
                for parts in segment.composed.parts
            )
            return replace(segment, composed=replace(segment.composed, parts=parts))
        if segment.code:
            return segment
        found = glossary.find(segment.plain, segment.capitals)
        if not found:
            return segment
        terms = tuple(wanted for wanted, _ in found)
        segment = replace(segment, named=None, is_made_up=False, terms=terms)
        places = [(at, wanted.text) for wanted, at in found if at]
        several = any(
            len(text.split()) > 1
            for at, said in places
            for text in (said, segment.plain[slice(*at)])
        )
        if not places or not self._reads_names or (several and _counts_words(segment, attention)):
            return segment
        if segment.capitals:
            target = self.codec.target_language
            places = [
                (at, write_capitals(said, segment.plain[slice(*at)], target)) for at, said in places
            ]
        return self._name(segment, attention, places)

    def _name(
        self, segment: Segment, attention: bool, terms: Sequence[tuple[Place, str]] = ()
    ) -> Segment:
        codec = self.codec
        languages = codec.source_language, codec.target_language
        blanks = not _counts_words(segment, attention)
        return name_fixed(segment, codec.split, codec, self.longest, languages, terms, blanks)

    @cached_property
    def _reads_names(self) -> bool:
        return all(map(self.codec.knows, ALPHABET))

    def _cut_line(self, line: str) -> list[str]:
        return sentences.split_sentences(line, self.codec.source_language)

    def _read(self, text: str) -> str:
        return read_capitals(text, self.codec.source_language)


def _counts_words(segment: Segment, attention: bool) -> bool:
    """Whether words are looked for by their number: what stands for one must be one then."""
    return attention or segment.stripped is not None
