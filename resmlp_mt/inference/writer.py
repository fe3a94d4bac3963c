"""What a search found, as text that a user reads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from resmlp_mt.inference.codec import TextCodec
from resmlp_mt.inference.hypotheses import Attention, Hypothesis, put_spans_back
from resmlp_mt.inference.search.engine import Engine
from resmlp_mt.inference.segments import Segment
from resmlp_mt.text.capitals import write_capitals
from resmlp_mt.text.code import restore_code
from resmlp_mt.text.endings import drop_added_stop
from resmlp_mt.text.entities import restore_blanks
from resmlp_mt.text.numbers import count_lost_numbers
from resmlp_mt.text.stand_ins import FIRST_MARK, compare_names, put_back
from resmlp_mt.text.superscripts import restore_superscripts


class Writer:
    """Makes translations of token indices.

    The engine is asked where somebody wants the attention, and where marks are put around words.
    It is not held here, so that a translator can free it.

    Args:
        codec: The model's dictionaries and subwords.
    """

    def __init__(self, codec: TextCodec):
        self.codec = codec

    def write(
        self,
        segment: Segment,
        source: np.ndarray,
        beams: list,
        attention: bool,
        get_engine: Callable[[], Engine],
    ) -> list[Hypothesis]:
        """Make text of beams, as `Translator.search` returns them, with their attention if asked.

        Args:
            segment: What was translated.
            source: Its token indices. (S,).
            beams: What was found for it.
            attention: Find it.
            get_engine: Gives what found them.
        """
        texts = [self.codec.decode(tokens) for tokens, _ in beams]
        language = self.codec.target_language
        if segment.is_item:
            texts = [drop_added_stop(text, segment.plain, language) for text in texts]
        if segment.capitals:
            texts = [write_capitals(text, segment.plain, language) for text in texts]
        texts = [put_back(text, segment.names) for text in texts]
        texts = [restore_superscripts(text, segment.plain) for text in texts]
        texts = [restore_blanks(text, segment.plain) for text in texts]
        texts = [restore_code(text, segment.plain) for text in texts]
        found = list(map(Hypothesis, texts, (score for _, score in beams)))
        if not (attention or segment.stripped):
            return found
        attended = self._attend(segment, source, beams, get_engine())
        found = [replace(h, attention=[a]) for h, a in zip(found, attended, strict=True)]
        if segment.stripped:
            found = [put_spans_back(hypothesis, segment) for hypothesis in found]
        return found if attention else [replace(h, attention=[]) for h in found]

    def rank(self, segment: Segment, beams: list) -> list:
        """The beams that have most of the segment's names first, and then most of its numbers.

        Of beams with as many names those come first that say none of them too often.
        Of a segment with names there are none if all beams lack some. Whoever put marks into a
        sentence knows what to do where some are lost.
        """
        names, read = segment.names, segment.read
        if not (names or any(map(str.isdigit, read))):
            return beams
        said = [self.codec.decode(tokens) for tokens, _ in beams]
        found = [compare_names(text, read, names) if names else (0, 0) for text in said]
        if all(lost for lost, _ in found) and not any(word >= FIRST_MARK for word in names):
            return []
        lacking = [count_lost_numbers(text, read) for text in said]
        order = sorted(range(len(beams)), key=lambda i: (*found[i], lacking[i]))
        return [beams[i] for i in order]

    def keep(
        self,
        segments: list[Segment],
        sentences: Sequence[str],
        attention: bool,
        get_engine: Callable[[], Engine],
    ) -> list[Hypothesis]:
        """Translations that a user gave, as if they had been found. Their scores are 0.

        Args:
            segments: The first of these are translated.
            sentences: The translation of each.
            attention: Find it.
            get_engine: Gives what finds it.
        """
        kept = [Hypothesis(sentence, 0.0) for sentence in sentences]
        for segment, hypothesis in zip(segments, kept if attention else (), strict=False):
            # There may be nothing of a line that the prefix translates otherwise.
            if segment.code or not hypothesis.text:
                continue
            tokens = self.codec.encode_translation(hypothesis.text)
            if len(tokens) >= get_engine().target_positions:  # longer than the model writes
                continue
            source = self.codec.encode(segment.pieces)
            (found,) = self.write(segment, source, [(tokens, 0.0)], attention, get_engine)
            words = self.codec.number_translation_words(hypothesis.text)
            hypothesis.attention = [replace(a, target_words=words) for a in found.attention]
        return kept

    def copy(self, segment: Segment, source: np.ndarray, attention: bool) -> Hypothesis:
        """The segment as its own translation, of which the model has no doubt."""
        hypothesis = Hypothesis(segment.text.strip(), 0.0)
        if attention:
            subwords = self.codec.name_source(source)
            words = self._number_words(segment)
            weights = np.eye(len(subwords))
            hypothesis.attention = [Attention(subwords, subwords, weights, words, words)]
        return hypothesis

    def _attend(
        self, segment: Segment, source: np.ndarray, beams: list, engine: Engine
    ) -> Iterator[Attention]:
        """Where each beam looks in the source, by the words as the model reads and says them."""
        subwords = self.codec.name_source(source)
        weights = engine.attend(source, [tokens for tokens, _ in beams])
        words = self._number_read(segment)
        for (tokens, _), rows in zip(beams, weights, strict=True):
            target = [*self.codec.name_target(tokens), subwords[-1]]
            said = self.codec.number_target_words(tokens)
            yield Attention(subwords, target, rows, words, said)

    def _number_words(self, segment: Segment) -> list[int]:
        """The word of each of its subwords in the text that the user has."""
        words = self._number_read(segment)
        stripped = segment.stripped
        return [stripped.words[word] for word in words] if stripped else words

    def _number_read(self, segment: Segment) -> list[int]:
        """The word of each of its subwords as it is read. The last of these may be left out."""
        return self.codec.number_source_words(segment.read)[: len(segment.pieces)]
