"""A text that a user gives, as what a model translates at once."""

from collections.abc import Sequence
from dataclasses import replace

from resmlp_mt.engines.codec import TextCodec
from resmlp_mt.engines.guides import Line, divide_begun
from resmlp_mt.engines.options import ReadingOptions
from resmlp_mt.text.pipeline import Pipeline
from resmlp_mt.text.rules import NAMING, RULES, capitals, terms
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.glossary import Glossary

# How often a segment is translated at most: as usual, with care, and as usual by a wider search,
# without the terms that may be missing.
TRIES = 3


class Reader:
    """Makes segments of text.

    Args:
        codec: The model's dictionaries and subwords.
        longest: Subwords that the model reads at once, without the end.
    """

    def __init__(self, codec: TextCodec, longest: int):
        self.codec, self.longest = codec, longest
        languages = codec.source_language, codec.target_language
        self.pipeline = Pipeline(languages, codec.split, codec)

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
            text, prefix, words: The line, and what leads its translation, as in `Row`.
            reading: How lines are read.
            glossary: Terms that are translated as it says.
        """
        segments = self.split(
            text,
            False if words else reading.split_sentences,  # words may stand in any sentence
            reading.recase and not (prefix or words),
            begun=bool(prefix),
            glossary=glossary,
        )
        kept, rest = divide_begun(prefix, segments, self.codec.target_language)
        return Line(text, segments, kept, rest, words)

    def split(
        self,
        text: str,
        split_sentences: bool | None = None,
        recase: bool = True,
        begun: bool = False,
        is_item: bool = False,
        glossary: Glossary | None = None,
    ) -> list[Segment]:
        """Split a text into what is translated at once. Joined, the parts are the text.

        Lines are translated apart, and cut where they are too long for the model. Unless
        `split_sentences` is False, they are cut too where they are longer than nearly all that it
        was trained on: of such lines it would leave out parts.

        Args:
            text: Raw text.
            split_sentences: Cut lines into sentences and entries; leave blocks of code as they are.
                Default: where the model wants it, as most do that were trained on single ones.
            recase: Apply all rules to each part. Without it texts are taken as typed.
            begun: The translation was begun elsewhere, so that sentences that fit the model stay
                whole, and are taken as typed.
            is_item: Every line is a heading, an item or a row: none needs a final stop.
            glossary: Terms that are translated as it says.

        Returns:
            The parts, in order; none of a blank text.
        """
        card, longest = self.codec.card, self.longest
        if split_sentences is not False and not begun and card.usual_length:
            longest = min(longest, card.usual_length)
        if split_sentences is None:
            split_sentences = card.split_sentences
        rules = RULES if recase and not begun else (terms, capitals) if recase else (terms,)
        find_terms = glossary.find if glossary else None
        about = replace(self.pipeline.about, is_item=is_item, find_terms=find_terms)
        return self.pipeline.split(text, longest, split_sentences, rules, not begun, about)

    def read_again(self, segment: Segment) -> Segment | None:
        """Another way to read a segment, of which no translation kept all; None if there is none.

        First with care: more gets a name. Then as usual, without the terms that may be missing.
        What is taken as typed stays so.
        """
        about = replace(segment.about, tries=segment.about.tries + 1)
        if about.tries == TRIES:
            return None
        again = self.pipeline.read(segment.text, about, segment.rules, self.longest)
        return again if (again.pieces, again.held) != (segment.pieces, segment.held) else None

    def name(self, segment: Segment) -> Segment:
        """A segment that is begun elsewhere, with names in the place of what stays as it is."""
        rules = {*NAMING, *(memo.rule for memo in segment.memos)}
        in_order = [rule for rule in RULES if rule in rules]
        return self.pipeline.read(segment.text, segment.about, in_order, self.longest)
