"""Where the texts of a request are read, queued, and joined to translations again."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from reprlib import repr as shorten

from starlette.exceptions import HTTPException

from resmlp_mt.engines.guides import Guide, check_room
from resmlp_mt.errors import UserError
from resmlp_mt.serving.batcher import Batcher, Impossible, Job, Options, QueueFull
from resmlp_mt.serving.bodies import too_many
from resmlp_mt.serving.settings import Limits
from resmlp_mt.text.dividing import LINE_ENDS
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.glossary import Glossary
from resmlp_mt.translating.hypotheses import Hypothesis

# Most characters of texts in which a request's terms are looked for, and most subwords that those
# of a sentence make its translation hold, times the beam: the worst take seconds.
SEARCHED, HELD = 100_000, 120
# Bytes of a weight of attention in JSON: "0.1234, ".
_WEIGHT = 8
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


class Desk:
    """Reads texts, queues them, and joins their translations.

    All of it runs beside the event loop, so that other requests need not wait. A megabyte takes
    seconds to read. Such requests wait for one another.

    Args:
        batcher: Where texts wait.
        limits: What requests may ask.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher, self.limits = batcher, limits
        self.quick, self.slow = ThreadPoolExecutor(2), ThreadPoolExecutor(1)
        self.long_waiting = 0

    async def translate(self, weight: int, prepare: Callable[[], Task | bytes]) -> bytes:
        """Translate what a request asks. To cancel it ends the work for it.

        Args:
            weight: Of its texts.
            prepare: Makes a task of it, or an answer for which nothing is translated.

        Raises:
            HTTPException: If the texts cannot be queued or translated so, or the answer is too
                large.
        """
        prepared = await self.read(weight, self._split, prepare)
        if isinstance(prepared, bytes):
            return prepared
        task, split, job = prepared
        try:
            found = await asyncio.wrap_future(self.batcher.submit(job).answer)
        except QueueFull:
            raise _too_busy() from None
        except Impossible as error:
            raise HTTPException(422, str(error)) from None
        answer = await self._run(
            weight + task.written, lambda: task.describe(_join(task, split, found))
        )
        self._check_answer(len(answer))  # of attention, and of characters with several bytes
        return answer

    async def read(self, weight: int, function: Callable, *arguments):
        """Run a function that reads so much, beside the event loop.

        Raises:
            HTTPException: If too much waits that is long.
        """
        if weight <= _LONG:
            return await self._run(weight, function, *arguments)
        if self.long_waiting == _LONG_WAITING:
            raise _too_busy()
        self.long_waiting += 1
        try:
            return await self._run(weight, function, *arguments)
        finally:
            self.long_waiting -= 1

    def _run(self, weight: int, function: Callable, *arguments) -> asyncio.Future:
        pool = self.quick if weight <= _LONG else self.slow
        return asyncio.get_running_loop().run_in_executor(pool, function, *arguments)

    def _check_answer(self, size: int) -> None:
        if size > self.limits.answer_bytes:
            most = f"{self.limits.answer_bytes:,}"
            raise HTTPException(413, f"the answer is larger than {most} bytes; ask for less")

    def _split(
        self, prepare: Callable[[], Task | bytes]
    ) -> bytes | tuple[Task, list[list[Segment]], Job]:
        """A task, the parts of its texts, and the job that they are."""
        task = prepare()
        if isinstance(task, bytes):
            return task
        most, size = self.limits.queue_size, sum(map(len, task.texts))
        if task.glossary and size > SEARCHED:
            raise too_many(size, SEARCHED, "characters with a glossary")
        if (lines := sum(map(_count_lines, task.texts))) > _BLANK * most:
            raise too_many(lines, _BLANK * most, "lines")
        split, count = [], 0
        glossary, begun = _join_terms(task), _is_begun(task.options)
        for text in task.texts:
            parts = task.options.translator.split(
                text, begun=begun, glossary=glossary, **task.reading
            )
            if (count := count + max(1, len(parts))) > most:
                raise too_many(count, most)
            split.append(parts)
        segments = [part for parts in split for part in parts]
        job = Job(segments, task.options)
        if (steps := sum(job.costs)) > self.limits.steps:
            factor = "beam x nbest x" if task.options.alternatives else "beam x"
            said = f"{factor} length in subwords comes to {steps:,}, and {self.limits.steps:,} is"
            raise HTTPException(422, f"{said} the most; send less, or with a narrower beam")
        size += task.written + task.options.attention * _WEIGHT * sum(
            len(part.pieces) ** 2 for part in segments
        )
        self._check_answer(size * task.options.search.nbest)
        for part in segments:
            _check_terms(part, task.options)
        if begun:
            _check_beginning(len(segments), task.options)
        return task, split, job


def _count_lines(text: str) -> int:
    return sum(map(text.count, LINE_ENDS))


def _is_begun(options: Options) -> bool:
    return bool(options.prefix or options.alternatives)


def _join_terms(task: Task) -> Glossary | None:
    """The terms of a request, and those of the house."""
    house = None if _is_begun(task.options) else task.house
    if not task.glossary:
        return house
    try:
        glossary = Glossary(task.glossary, task.options.translator.codec)
    except UserError as error:
        raise HTTPException(422, str(error)) from None
    return glossary.over(house) if house else glossary


def _check_terms(part: Segment, options: Options) -> None:
    """Check that a search could hold the terms of a part."""
    held, beam = sum(len(wanted.tokens) for wanted in part.wanted), options.search.beam
    if held > (most := HELD // beam):
        most_held = f"the terms in it have {held} subwords; with beam {beam} {most} at most"
        raise HTTPException(422, f"glossary: {shorten(part.text.strip())}: {most_held}")


def _too_busy() -> HTTPException:
    return HTTPException(429, "too many texts wait; try again", headers={"Retry-After": "1"})


def _check_beginning(parts: int, options: Options) -> None:
    """Check that a text of so many parts can be translated from a given beginning on."""
    if parts > 1:
        message = f"the text is translated in {parts} parts; send the one that is begun"
        raise HTTPException(422, f"prefix, alternatives: {message}")
    try:
        guide = Guide(options.translator.codec.encode_target(options.prefix))
        positions = options.translator.engine.target_positions
        # No request has a length that goes by its source's.
        check_room([guide], min(options.search.longest(0), positions - 1))
    except UserError as error:
        raise HTTPException(422, f"prefix: {error}") from None


def _join(task: Task, split: list[list[Segment]], found: list[list[Hypothesis]]) -> list[Found]:
    rest, results = iter(found), []
    for text, parts in zip(task.texts, split, strict=True):
        each = list(islice(rest, len(parts)))
        results.append(Found(text, task.options.translator.join(text, parts, each), parts, each))
    return results
