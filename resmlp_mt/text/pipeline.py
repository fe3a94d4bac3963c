"""The rules, walked forwards to read a text and backwards to write its translation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import ModuleType

import numpy as np

from resmlp_mt.text.about import About, Knowledge
from resmlp_mt.text.dividing import divide, holds_text
from resmlp_mt.text.fitting import Ruler
from resmlp_mt.text.rules import RULES, numbers
from resmlp_mt.text.rules.capitals import read_capitals
from resmlp_mt.text.rules.spans import NUMBERED
from resmlp_mt.text.segments import Memo, Segment
from resmlp_mt.text.sentences import split_sentences
from resmlp_mt.text.traced import Traced

# Tokens of a special meaning, as a target language: "<2de>", ">>deu<<", "__de__", "[de]".
_SYMBOL = re.compile(r"<[^\s<>]{1,20}>|>>[^\s<>]{1,20}<<|__\w{1,20}?__|\[\w{1,20}\]")
_SYMBOLS = re.compile(rf"(?:(?:{_SYMBOL.pattern})\s*)+(?=\S)")

# How much each word of a translation is of each of the source: shares. (T, S). Words are those
# that the model says and reads.
Weigh = Callable[[], np.ndarray]


class Pipeline:
    """Makes segments of texts, and texts of what a model says for them.

    Args:
        languages: Of source and target.
        split: The subwords of a text, without white space around it.
        model: What the model knows.
    """

    def __init__(
        self, languages: tuple[str, str], split: Callable[[str], Sequence[str]], model: Knowledge
    ):
        self.languages, self.about = languages, About(languages, model)
        self._split = split
        self._measure = lru_cache(4096)(self._split_as_read)

    def split(
        self,
        text: str,
        longest: int,
        sentences: bool,
        rules: Sequence[ModuleType] = RULES,
        finely: bool = True,
        about: About | None = None,
    ) -> list[Segment]:
        """Split a text as `divide` does, and read each part. Joined, the parts are the text.

        Args:
            text, sentences, finely: As for `divide`.
            longest, rules: As for `read`.
            about: What is known of all parts.
        """
        about = about or self.about
        cut = partial(split_sentences, language=self.languages[0])
        ruler = Ruler(self._measure, longest)
        symbols = self._find_symbols(text)
        segments = []
        for part in divide(text, cut, ruler, sentences, finely, about.is_item):
            its = replace(about, is_item=part.is_item, begins=part.begins, symbols=symbols)
            segments.append(self.read(part.text, its, rules, longest, part.stays))
        return segments

    def read(
        self,
        text: str,
        about: About,
        rules: Sequence[ModuleType],
        longest: int,
        stays: bool = False,
    ) -> Segment:
        """A part of a text, with the white space around it, as the model reads it.

        Args:
            text, about, stays: As a `Segment` has them.
            rules: What is taken off it.
            longest: Subwords that fit the model. What rules make longer is read without them.
        """
        whole = Traced.of(text)
        if stays:
            return Segment(text, about, whole, stays=True)
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        stripped = Traced(text[start:end], whole.places[start:end])
        if about.symbols and stripped.text.startswith(about.symbols):
            stripped = stripped.replace([((0, len(about.symbols)), "")])
        said, memos = stripped, []
        for rule in rules if about.find_terms or holds_text(stripped.text) else ():
            if (done := rule.read(said, about)) is None:
                pieces = self._split(stripped.text)[:longest]
                return Segment(text, about, stripped, pieces, stays=True)
            said, memo = done
            if memo is not None:
                memos.append(Memo(rule, memo, said))
        said = said.replace([((0, 0), about.symbols)] if about.symbols else ())
        pieces = self._split(said.text)
        if len(pieces) > longest and memos:
            return self.read(text, about, (), longest)
        return Segment(text, about, said, pieces[:longest], tuple(memos), rules=rules)

    def write(self, segment: Segment, said: str, weigh: Weigh) -> Traced | None:
        """The translation of a segment, for which the model said this with words of such shares.

        It is None if it lost something that must be kept.
        """
        done = spoken = Traced.of(said)
        for memo in reversed(segment.memos):

            def compare(now: Traced, level: Traced = memo.left) -> np.ndarray:
                words = level.match_words(segment.read)
                if not spoken.text.split():
                    return np.zeros((len(now.text.split()), len(words)))
                shares = weigh()[now.match_words(spoken)]
                often = np.bincount(words, minlength=shares.shape[1])
                return shares[:, words] / often[words]

            if (done := memo.rule.write(done, memo.memo, segment.about, compare)) is None:
                return None
        return done

    def copy(self, segment: Segment) -> str:
        """What stays of a segment. Numbers alone are written as the target language writes them."""
        text = segment.text.strip()
        is_number = not (segment.stays or segment.is_translated)
        return numbers.rewrite(text, segment.about) if is_number else text

    def _split_as_read(self, text: str) -> Sequence[str]:
        return self._split(read_capitals(NUMBERED.sub("", text), self.languages[0]).strip())

    def _find_symbols(self, text: str) -> str:
        """The tokens of a special meaning that a text begins with, and the blanks behind them."""
        found = _SYMBOLS.match(text)
        tokens = _SYMBOL.findall(found[0]) if found else []
        pieces = {piece.lstrip("\u2581") for token in tokens for piece in self._split(token)} - {""}
        return found[0] if tokens and pieces == set(tokens) else ""
