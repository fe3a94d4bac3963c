"""The rules, walked forwards to read a text and backwards to write its translation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import ModuleType

import numpy as np

from resmlp_mt.text.dividing import Part, divide
from resmlp_mt.text.fitting import Ruler
from resmlp_mt.text.rules import NAMING, RULES, capitals, numbers, terms
from resmlp_mt.text.rules.spans import NUMBERED
from resmlp_mt.text.segments import About, FindTerms, Model, Segment, Traced, holds_text
from resmlp_mt.text.sentences import split_sentences as cut_sentences

# How often a segment is translated at most: as usual, with care, and as usual by a wider search,
# without the terms that may be missing.
TRIES = 3
# Tokens of a special meaning, as a target language: "<2de>", ">>deu<<", "__de__", "[de]".
_SYMBOL = re.compile(r"<[^\s<>]{1,20}>|>>[^\s<>]{1,20}<<|__\w{1,20}?__|\[\w{1,20}\]")
_SYMBOLS = re.compile(rf"(?:(?:{_SYMBOL.pattern})\s*)+(?=\S)")

# The shares of the source's words in each word of a translation. (T, S). Words are those of the
# texts that the model reads and writes.
Weigh = Callable[[], np.ndarray]


class Pipeline:
    """Makes segments of texts, of `longest` subwords at most, and texts of their translations."""

    def __init__(self, model: Model, longest: int):
        self.model, self.longest = model, longest
        self.about = About((model.source_language, model.target_language), model)
        self._measure = lru_cache(4096)(self._split_as_read)

    def split(
        self,
        text: str,
        split_sentences: bool | None = None,
        recase: bool = True,
        begun: bool = False,
        is_item: bool = False,
        find_terms: FindTerms | None = None,
    ) -> list[Segment]:
        """Split a text into segments, each translated at once. Joined, they are the text.

        Lines are translated apart, and cut where they are too long for the model. Unless
        `split_sentences` is False, they are cut too where they are longer than nearly all lines of
        its training: of such lines it would leave out parts.

        Args:
            text: Raw text.
            split_sentences: Cut lines into sentences and entries; leave blocks of code as they are.
                Default: if the model was trained on single sentences.
            recase: Apply all rules to each part. Without it texts are taken as typed.
            begun: The translation was begun elsewhere, so that sentences that fit the model stay
                whole, and are taken as typed.
            is_item: Every line is a heading, an item or a row: none needs a final stop.
            find_terms: Finds terms that are translated as a glossary says.

        Returns:
            The parts, in order; none of a blank text.
        """
        card, longest = self.model.card, self.longest
        if split_sentences is not False and not begun and card.usual_length:
            longest = min(longest, card.usual_length)
        if split_sentences is None:
            split_sentences = card.split_sentences
        rules = RULES if recase and not begun else (terms, capitals) if recase else (terms,)
        about = replace(self.about, symbols=self._find_symbols(text), find_terms=find_terms)
        cut = partial(cut_sentences, language=self.about.languages[0])
        ruler = Ruler(self._measure, longest)
        parts = divide(text, cut, ruler, split_sentences, not begun, is_item)
        known: dict[Part, Segment] = {}  # a part that is there twice is read once
        for part in parts:
            if part not in known:
                its = replace(about, is_item=part.is_item, begins=part.begins)
                if part.stays:
                    known[part] = Segment(part.text, its, Traced.of(part.text), stays=True)
                else:
                    known[part] = self.read(part.text, its, rules, longest)
        return [known[part] for part in parts]

    def read(
        self,
        text: str,
        about: About,
        rules: Sequence[ModuleType] = RULES,
        longest: int | None = None,
    ) -> Segment:
        """A part of a text, with the white space around it, as the model reads it.

        A part that `rules` make longer than `longest` subwords is read without them.
        """
        longest = longest or self.longest
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        if text.startswith(about.symbols, start):
            start += len(about.symbols)
        stripped = Traced(text[start:end], range(start, end))
        said, memos = stripped, []
        for rule in rules if about.find_terms or holds_text(stripped.text) else ():
            if (done := rule.read(said, about)) is None:
                pieces = self.model.split(stripped.text)[:longest]
                return Segment(text, about, stripped, pieces, stays=True)
            said, memo = done
            if memo is not None:
                memos.append((rule, memo, said))
        if about.symbols:
            said = said.replace([((0, 0), about.symbols)])
        pieces = self.model.split(said.text)
        if len(pieces) > longest and memos:
            return self.read(text, about, (), longest)
        return Segment(text, about, said, pieces[:longest], tuple(memos), rules=rules)

    def read_again(self, segment: Segment) -> Segment | None:
        """Another way to read a segment, of which no translation kept all; None if there is none.

        First with care: more words get a name. Then as usual, without the terms that may be
        missing. A segment that is taken as typed stays so.
        """
        about = replace(segment.about, tries=segment.about.tries + 1)
        if about.tries == TRIES:
            return None
        again = self.read(segment.text, about, segment.rules)
        return again if (again.pieces, again.held) != (segment.pieces, segment.held) else None

    def name(self, segment: Segment) -> Segment:
        """A segment that is begun elsewhere, with names in the place of words that stay."""
        rules = {*NAMING, *(rule for rule, _, _ in segment.memos)}
        return self.read(segment.text, segment.about, [rule for rule in RULES if rule in rules])

    def write(self, segment: Segment, said: str, weigh: Weigh) -> Traced | None:
        """The translation of a segment: the model's text `said`, and all that was taken off it.

        None if the translation lost something that must be kept.
        """
        done = spoken = Traced.of(said)
        for rule, memo, left in reversed(segment.memos):

            def compare(now: Traced, level: Traced = left) -> np.ndarray:
                words = level.match_words(segment.read)
                if not spoken.text.split():
                    return np.zeros((len(now.text.split()), len(words)))
                shares = weigh()[now.match_words(spoken)]
                often = np.bincount(words, minlength=shares.shape[1])
                return shares[:, words] / often[words]

            if (done := rule.write(done, memo, segment.about, compare)) is None:
                return None
        return done

    def copy(self, segment: Segment) -> str:
        """The segment untranslated. Numbers alone are written as in the target language."""
        text = segment.text.strip()
        is_number = not (segment.stays or segment.is_translated)
        return numbers.rewrite(text, segment.about) if is_number else text

    def _split_as_read(self, text: str) -> Sequence[str]:
        plain = NUMBERED.sub("", text)
        return self.model.split(capitals.read_capitals(plain, self.about.languages[0]))

    def _find_symbols(self, text: str) -> str:
        """The tokens of a special meaning that a text begins with, and the blanks behind them."""
        found = _SYMBOLS.match(text)
        tokens = _SYMBOL.findall(found[0]) if found else []
        pieces = {piece.lstrip("\u2581") for token in tokens for piece in self.model.split(token)}
        return found[0] if tokens and pieces - {""} == set(tokens) else ""
