"""Beams of a search, as text that a user reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.search.engine import Engine
from resmlp_mt.text.pipeline import Pipeline
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.alignment import as_typed, attend, attend_itself, weigh_words
from resmlp_mt.translating.hypotheses import Hypothesis


class Writer:
    """Makes translations of token indices.

    The engine is asked where somebody wants the attention, and where marks are put around words.
    It is not held here, so that a translator can free it.
    """

    def __init__(self, codec: TextCodec, pipeline: Pipeline):
        self.codec, self.pipeline = codec, pipeline

    def write(
        self,
        segment: Segment,
        beams: list,
        count: int,
        attention: bool,
        get_engine: Callable[[], Engine],
    ) -> list[Hypothesis]:
        """Make text of beams, as `Translator.search` returns them, with their attention if asked.

        At most `count` translations of the segment are made, of those that lost nothing.
        """
        found: list[Hypothesis] = []
        for tokens, score in beams:
            said = self.codec.decode(tokens)
            sizes = len(said.split()), len(segment.read.text.split())
            look = cache(lambda tokens=tokens: attend(self.codec, segment, tokens, get_engine()))
            weigh = cache(lambda look=look, sizes=sizes: weigh_words(look(), *sizes))
            if (done := self.pipeline.write(segment, said, weigh)) is not None:
                looks = [as_typed(self.codec, look(), segment, said, done)] if attention else []
                found.append(Hypothesis(done.text, score, looks))
            if len(found) == count:
                break
        return found

    def keep(
        self,
        segments: list[Segment],
        sentences: Sequence[str],
        attention: bool,
        get_engine: Callable[[], Engine],
    ) -> list[Hypothesis]:
        """Translations of the first segments that a user gave, as if found. Their scores are 0."""
        kept = [Hypothesis(sentence, 0.0) for sentence in sentences]
        for segment, hypothesis in zip(segments, kept if attention else (), strict=False):
            if not (segment.pieces and hypothesis.text):  # a prefix may lack parts of the line
                continue
            tokens = self.codec.encode_translation(hypothesis.text)
            if len(tokens) < get_engine().target_positions:  # no longer than the model writes
                (found,) = self.write(segment, [(tokens, 0.0)], 1, attention, get_engine)
                words = self.codec.number_translation_words(hypothesis.text)
                hypothesis.attention = [replace(a, target_words=words) for a in found.attention]
        return kept

    def copy(self, segment: Segment, attention: bool, lost: bool = False) -> Hypothesis:
        """The segment as its own translation, of which the model has no doubt.

        `lost` says that each translation lost something.
        """
        text = segment.text.strip() if lost else self.pipeline.copy(segment)
        looks = [attend_itself(self.codec, segment)] if attention else []
        return Hypothesis(text, 0.0, looks, lost=lost)
