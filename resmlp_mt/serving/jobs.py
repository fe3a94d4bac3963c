"""What a request has translated: its segments, and how they are searched."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.serving.limits import AnswerTooLarge
from resmlp_mt.serving.request import USUAL_BEAM
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.alternatives import MORE, find_alternatives
from resmlp_mt.translating.hypotheses import Hypothesis
from resmlp_mt.translating.translator import Translator

# Bytes of a weight in JSON: "0.1234, ".
_WEIGHT = 8
# What is more than a plain beam search is done by fairseq. Two texts that hold few words then take
# about as long as 64 of a plain search.
_FAIRSEQ = 32


class Impossible(Exception):
    """No translation is as it was asked for; says why."""


@dataclass(frozen=True)
class Options:
    """What segments must have in common to be translated together."""

    translator: Translator
    search: SearchOptions = SearchOptions(beam=USUAL_BEAM)
    attention: bool = False
    prefix: str = ""  # of all segments: there is one
    alternatives: bool = False

    @property
    def beams(self) -> int:
        """Hypotheses that are kept for a segment at once, at most, or what takes as long."""
        beams = self.search.beam * (MORE * self.search.nbest if self.alternatives else 1)
        return beams if self.search.is_plain else beams * _FAIRSEQ

    def translate(self, segments: list[Segment]) -> Iterator[list[Hypothesis]]:
        """Yield the translations of each segment.

        Raises:
            Impossible: If more than a plain search was asked for, or terms must be held, and that
                cannot be had.
        """
        try:
            yield from self._search(segments)
        except BrokenModel:
            raise
        except UserError as error:
            holds = any(segment.wanted for segment in segments)
            if self.search.is_plain and not holds:
                raise
            raise Impossible("glossary: " * holds + str(error)) from None

    def _search(self, segments: list[Segment]) -> Iterator[list[Hypothesis]]:
        if self.alternatives:
            return find_alternatives(
                self.translator, segments, self.search, self.prefix, self.attention
            )
        guides = None
        if self.prefix:
            guides = [Guide(self.translator.codec.encode_target(self.prefix))] * len(segments)
        # The batches side by side are those of this queue.
        return self.translator.translate_segments(
            segments, self.search, attention=self.attention, guides=guides, threads=1
        )


@dataclass(eq=False)
class Job:
    """The segments of one request.

    `answer` is done when all are translated: a list of hypotheses for each. Cancel it when it is
    wanted no more. Segments whose search must hold something come last, in batches of their own.
    """

    segments: list[Segment]
    options: Options
    room: int  # bytes that the answer may still grow by
    answer: Future = field(default_factory=Future)
    taken: int = 0

    def __post_init__(self):
        self.found: list[list[Hypothesis] | None] = [None] * len(self.segments)
        self.missing = len(self.segments)
        self.holds = [bool(segment.held) for segment in self.segments]
        self.order = sorted(range(self.missing), key=self.holds.__getitem__)

    @property
    def waiting(self) -> int:
        """Texts that wait for a thread, without those of cancelled jobs."""
        return 0 if self.answer.done() else len(self.segments) - self.taken

    @cached_property
    def _holding(self) -> Options:
        return replace(self.options, search=replace(self.options.search, constraints="unordered"))

    def get_options(self, index: int) -> Options:
        """How a text is translated."""
        return self._holding if self.holds[index] else self.options

    @property
    def next_options(self) -> Options:
        """How the text is translated whose turn it is."""
        return self.get_options(self.order[self.taken])

    def take(self) -> int:
        """The index of the text whose turn it is; called with the batcher's lock."""
        self.taken += 1
        return self.order[self.taken - 1]

    def put(self, index: int, hypotheses: list[Hypothesis]) -> None:
        """Add the translations of a text; called with the batcher's lock."""
        self.found[index] = hypotheses
        self.missing -= 1
        self.room -= sum(map(_weigh, hypotheses))
        if self.room < 0:
            self.fail(AnswerTooLarge())
        elif self.missing == 0 and self._may_answer():
            self.answer.set_result(self.found)

    def fail(self, error: Exception) -> None:
        """End without an answer; called with the batcher's lock."""
        if self._may_answer():
            self.answer.set_exception(error)

    def _may_answer(self) -> bool:
        return not self.answer.done() and self.answer.set_running_or_notify_cancel()


def _weigh(hypothesis: Hypothesis) -> int:
    """About the bytes of a translation in JSON."""
    weights = sum(attention.weights.size for attention in hypothesis.attention)
    return 50 + len(hypothesis.text.encode()) + _WEIGHT * weights
