"""The texts of a request on their way to translations: read, searched, and joined again."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from reprlib import repr as shorten
from typing import Self

from starlette.exceptions import HTTPException

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.serving.settings import USUAL_BEAM, Limits
from resmlp_mt.text.dividing import LINE_ENDS
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.alternatives import MORE, find_alternatives
from resmlp_mt.translating.glossary import Glossary
from resmlp_mt.translating.hypotheses import Hypothesis
from resmlp_mt.translating.translator import Translator

# Most characters of texts in which a request's terms are looked for, and most subwords that those
# of a sentence make its translation hold, times the beam: the worst take seconds.
SEARCHED, HELD = 100_000, 120
_WEIGHT = 7  # bytes of a weight of attention in JSON: "0.1234,"
# Characters that a line counts as, which is read by itself; and how many times as long it takes
# where terms are looked for.
_LINE, _LOOKING = 20, 10
# Most lines of a request, for each text that the queue holds: blank ones are read, not queued.
_BLANK = 2
# What is more than a plain beam search is done by fairseq. Two texts that hold few words then take
# about as long as 64 of a plain search.
_FAIRSEQ = 32


@dataclass(frozen=True)
class Found:
    """A text as it was sent, its translations, best first, its parts, and the ways of each."""

    text: str
    hypotheses: list[Hypothesis]
    segments: list[Segment]
    parts: list[list[Hypothesis]]


@dataclass(eq=False)
class Job:
    """Texts that are to be translated in one way, and how far that is.

    Args:
        texts: Raw text.
        translator, search, attention: By which model, and how; None where there are no texts.
        prefix, alternatives: The beginning of the only text's translation, and whether it then goes
            on in different ways.
        describe: Makes the answer.
        reading: As for `Pipeline.split`.
        glossary: Terms, and what a translation shall hold for each.
        written: Characters that `describe` reads or writes beside those of the texts.

    Attributes:
        parts: Of each text what is translated at once; `segments`: these in a row.
        costs: About the steps of all beams that the search of each takes.
        found: The translations of each, or None.
        answer: Is `found` when all are there. Cancel it when it is wanted no more.
        spent, taken: Steps that were searched, and segments that a thread took.
        running: The rest of a search that is done in slices.
    """

    texts: list[str]
    translator: Translator | None
    search: SearchOptions = SearchOptions(beam=USUAL_BEAM)
    attention: bool = False
    prefix: str = ""
    alternatives: bool = False
    describe: Callable[[list[Found]], bytes] = lambda found: b""
    reading: dict[str, bool | None] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)
    written: int = 0

    def __post_init__(self):
        self.answer: Future[list[list[Hypothesis]]] = Future()
        self.spent = self.taken = 0
        self.running: Iterator | None = None
        self.hold([])

    def hold(self, parts: list[list[Segment]]) -> None:
        """Take the parts of the texts."""
        self.parts, self.segments = parts, [segment for each in parts for segment in each]
        self.costs = list(map(self._weigh, self.segments))
        self.found: list[list[Hypothesis] | None] = [None] * len(self.segments)

    @property
    def way(self) -> tuple:
        """The settings that jobs must share to be translated together."""
        return self.translator, self.search, self.attention, self.prefix, self.alternatives

    @property
    def waiting(self) -> int:
        """Segments that wait for a thread; none where the job was cancelled."""
        return 0 if self.answer.done() else len(self.segments) - self.taken

    def read(self, limits: Limits) -> Self:
        """Find the parts of the texts.

        Raises:
            HTTPException: If they are too many.
            UserError: If they cannot be translated so.
        """
        most, size = limits.queue_size, sum(map(len, self.texts))
        begun = bool(self.prefix or self.alternatives)
        if self.glossary and size > SEARCHED:
            raise too_many(size, SEARCHED, "characters with a glossary")
        if (lines := sum(map(_count_lines, self.texts))) > _BLANK * most:
            raise too_many(lines, _BLANK * most, "lines")
        glossary = Glossary(self.glossary, self.translator.codec) if self.glossary else None
        parts, count = [], 0
        for text in self.texts:
            each = self.translator.split(text, begun=begun, glossary=glossary, **self.reading)
            if (count := count + max(1, len(each))) > most:
                raise too_many(count, most)
            parts.append(each)
        self.hold(parts)
        if begun and count > 1:
            said = f"the text is translated in {count} parts; send the one that is begun"
            raise UserError(f"prefix, alternatives: {said}")
        if (steps := sum(self.costs)) > limits.steps:
            said = f"beam x {'nbest x ' * self.alternatives}length in subwords comes to"
            raise UserError(f"{said} {steps:,}, and {limits.steps:,} is the most; send less")
        for segment in self.segments:
            held, beam = sum(len(wanted.tokens) for wanted in segment.wanted), self.search.beam
            if held * beam > HELD:
                said = f"terms of {held} subwords; with beam {beam} {HELD // beam} at most"
                raise UserError(f"glossary: {shorten(segment.text.strip())}: {said}")
        size += self.written
        if self.attention:
            size += _WEIGHT * sum(len(segment.pieces) ** 2 for segment in self.segments)
        check_answer(size * self.search.nbest, limits)
        return self

    def write(self) -> bytes:
        """The answer, once all is translated."""
        rest, results = iter(self.answer.result()), []
        for text, parts in zip(self.texts, self.parts, strict=True):
            each = list(islice(rest, len(parts)))
            results.append(Found(text, self.translator.join(text, parts, each), parts, each))
        return self.describe(results)

    def translate(self, segments: list[Segment]) -> Iterator[list[Hypothesis] | None]:
        """The translations of each segment; None where other work may come in between.

        Raises:
            UserError: On the way, if they cannot be translated so.
        """
        if self.alternatives:
            asked = segments, self.search, self.prefix, self.attention
            return find_alternatives(self.translator, *asked)
        guides = None
        if self.prefix:
            begun = self.translator.codec.encode_target(self.prefix)
            guides = [Guide(begun)] * len(segments)
        # The batches side by side are those of the queue.
        return self.translator.translate_segments(
            segments, self.search, attention=self.attention, guides=guides, threads=1
        )

    def end(self, error: Exception | None = None) -> None:
        """Answer, with what was found or an error."""
        with suppress(InvalidStateError):  # it was cancelled
            self.answer.set_exception(error) if error else self.answer.set_result(self.found)

    def _weigh(self, segment: Segment) -> int:
        beams = self.search.beam * (MORE * self.search.nbest if self.alternatives else 1)
        is_plain = self.search.is_plain and not segment.held
        return (beams if is_plain else beams * _FAIRSEQ) * (len(segment.pieces) + 1)


def is_mistake(error: Exception) -> bool:
    """Whether it tells of a request, and not of the service."""
    asked = isinstance(error, UserError) and not isinstance(error, BrokenModel)
    return asked or isinstance(error, HTTPException)


def weigh(texts: list[str], terms: Mapping[str, str] | None = None) -> int:
    """About how long it takes to read texts, and to look for terms in them."""
    size = sum(len(text) + _LINE * _count_lines(text) for text in texts)
    return size * (_LOOKING if terms else 1) + 2 * sum(map(len, terms or ()))


def too_many(found: int, most: int, what: str = "sentences") -> HTTPException:
    """The answer to a request with more than the queue holds."""
    return HTTPException(413, f"{found:,} {what}; send {most:,} at most")


def check_answer(size: int, limits: Limits) -> None:
    """Check that an answer has no more bytes than it may have."""
    if size > limits.answer_bytes:
        most = f"{limits.answer_bytes:,}"
        raise HTTPException(413, f"the answer is larger than {most} bytes; ask for less")


def _count_lines(text: str) -> int:
    return sum(map(text.count, LINE_ENDS))
