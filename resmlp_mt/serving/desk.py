"""Where the texts of a request are read, queued, and joined to translations again."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from reprlib import repr as shorten

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException

from resmlp_mt.engines.guides import Guide, check_room
from resmlp_mt.errors import UserError
from resmlp_mt.serving.batcher import Batcher, Job, Options, too_busy
from resmlp_mt.serving.settings import Limits
from resmlp_mt.text.dividing import LINE_ENDS
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.glossary import Glossary
from resmlp_mt.translating.hypotheses import Hypothesis

# Most characters of texts in which a request's terms are looked for, and most subwords that those
# of a sentence make its translation hold, times the beam: the worst take seconds.
SEARCHED, HELD = 100_000, 120
# Bytes of a weight of attention in JSON: "0.1234,".
_WEIGHT = 7
# Weight of what takes ten milliseconds, a character's being 1, and how many may wait with more.
_LONG, _LONG_WAITING = 3_000, 32
# A line, which is read by itself; and how many times as long it takes where terms are looked for.
_LINE, _LOOKING = 20, 10
# Most lines of a request, for each text that the queue holds: blank ones are read, not queued.
_BLANK = 2


@dataclass(frozen=True)
class Found:
    """The translations of a text, and its parts.

    Attributes:
        text: As it was sent.
        hypotheses: Its translations, best first.
        segments: Its parts that were translated at once.
        parts: The translations of each of them.
    """

    text: str
    hypotheses: list[Hypothesis]
    segments: list[Segment]
    parts: list[list[Hypothesis]]


@dataclass(frozen=True)
class Task:
    """Texts to be translated, and what becomes of them.

    Attributes:
        texts: Raw text.
        options: By which model, and how.
        describe: Makes the answer.
        reading: As for `Reader.split`.
        glossary: Terms, and what a translation shall hold for each.
        house: The terms of the house. Where they cannot be held, the texts go without.
        written: Characters that `describe` reads or writes beside those of the texts.
    """

    texts: list[str]
    options: Options
    describe: Callable[[list[Found]], bytes]
    reading: dict[str, bool | None] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)
    house: Glossary | None = None
    written: int = 0


def weigh(texts: list[str], terms: Mapping[str, str] | None = None) -> int:
    """About how long it takes to read texts, and to look for terms in them."""
    size = sum(len(text) + _LINE * _count_lines(text) for text in texts)
    return size * (_LOOKING if terms else 1) + 2 * sum(map(len, terms or ()))


def too_many(found: int, most: int, what: str = "sentences") -> HTTPException:
    """The answer to a request with more than the queue holds."""
    return HTTPException(413, f"{found:,} {what}; send {most:,} at most")


class Desk:
    """Reads texts, queues them, and joins their translations.

    All of it runs beside the event loop, so that other requests need not wait. A megabyte takes
    seconds to read. Such requests wait for one another.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher, self.limits = batcher, limits
        self.quick, self.slow = CapacityLimiter(2), CapacityLimiter(1)

    async def translate(self, weight: int, prepare: Callable[[], Task | bytes]) -> bytes:
        """Translate what a request asks: a task, or else an answer. To cancel it ends the work.

        Raises:
            HTTPException: If the texts cannot be queued or translated so, or the answer is too
                large.
        """
        prepared = await self.read(weight, lambda: self._split(prepare()))
        if isinstance(prepared, bytes):
            return prepared
        task, split, job = prepared
        found = await asyncio.wrap_future(self.batcher.submit(job).answer)
        answer = await self._run(weight + task.written, _describe, task, split, found)
        self._check_answer(len(answer))  # of attention, and of characters with several bytes
        return answer

    async def read(self, weight: int, function: Callable, *arguments):
        """Run a function that reads so much, beside the event loop.

        Raises:
            HTTPException: If too much waits that is long.
        """
        used = self.slow.statistics()
        if weight > _LONG and used.borrowed_tokens + used.tasks_waiting >= _LONG_WAITING:
            raise too_busy()
        return await self._run(weight, function, *arguments)

    async def _run(self, weight: int, function: Callable, *arguments):
        limiter = self.quick if weight <= _LONG else self.slow
        return await run_sync(function, *arguments, abandon_on_cancel=True, limiter=limiter)

    def _check_answer(self, size: int) -> None:
        if size > self.limits.answer_bytes:
            most = f"{self.limits.answer_bytes:,}"
            raise HTTPException(413, f"the answer is larger than {most} bytes; ask for less")

    def _split(self, task: Task | bytes) -> bytes | tuple[Task, list[list[Segment]], Job]:
        """A task, the parts of its texts, and the job that they are."""
        if isinstance(task, bytes):
            return task
        most, size = self.limits.queue_size, sum(map(len, task.texts))
        if task.glossary and size > SEARCHED:
            raise too_many(size, SEARCHED, "characters with a glossary")
        if (lines := sum(map(_count_lines, task.texts))) > _BLANK * most:
            raise too_many(lines, _BLANK * most, "lines")
        options, split, count = task.options, [], 0
        reading = task.reading | {"begun": options.is_begun, "glossary": _join_terms(task)}
        for text in task.texts:
            split.append(options.translator.split(text, **reading))
            if (count := count + max(1, len(split[-1]))) > most:
                raise too_many(count, most)
        job = Job([part for parts in split for part in parts], options)
        if (steps := sum(job.costs)) > self.limits.steps:
            factor = "beam x nbest x" if options.alternatives else "beam x"
            said = f"{factor} length in subwords comes to {steps:,}, and {self.limits.steps:,} is"
            raise HTTPException(422, f"{said} the most; send less, or with a narrower beam")
        size += task.written
        if options.attention:
            size += _WEIGHT * sum(len(part.pieces) ** 2 for part in job.segments)
        self._check_answer(size * options.search.nbest)
        try:
            _check_held(job.segments, options)
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        return task, split, job


def _count_lines(text: str) -> int:
    return sum(map(text.count, LINE_ENDS))


def _join_terms(task: Task) -> Glossary | None:
    """The terms of a request, and those of the house."""
    house = None if task.options.is_begun else task.house
    if not task.glossary:
        return house
    try:
        glossary = Glossary(task.glossary, task.options.translator.codec)
    except UserError as error:
        raise HTTPException(422, str(error)) from None
    return glossary.over(house) if house else glossary


def _check_held(parts: list[Segment], options: Options) -> None:
    """Check that a search could hold the terms of each part, and a given beginning.

    Raises:
        UserError: If it could not.
    """
    most = HELD // options.search.beam
    for part in parts:
        if (held := sum(len(wanted.tokens) for wanted in part.wanted)) > most:
            said = f"the terms in it have {held} subwords; with beam {options.search.beam} {most}"
            raise UserError(f"glossary: {shorten(part.text.strip())}: {said} at most")
    if not options.is_begun:
        return
    if len(parts) > 1:
        said = f"the text is translated in {len(parts)} parts; send the one that is begun"
        raise UserError(f"prefix, alternatives: {said}")
    try:
        guide = Guide(options.translator.codec.encode_target(options.prefix))
        # No request has a length that goes by its source's.
        longest = min(options.search.longest(0), options.translator.engine.target_positions - 1)
        check_room([guide], longest)
    except UserError as error:
        raise UserError(f"prefix: {error}") from None


def _describe(task: Task, split: list[list[Segment]], found: list[list[Hypothesis]]) -> bytes:
    """The answer to a task, of the translations of all parts."""
    rest, results = iter(found), []
    for text, parts in zip(task.texts, split, strict=True):
        each = list(islice(rest, len(parts)))
        results.append(Found(text, task.options.translator.join(text, parts, each), parts, each))
    return task.describe(results)
