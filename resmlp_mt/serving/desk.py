"""Where the texts of a request are split, queued, and joined to translations again."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from reprlib import repr as shorten

from starlette.exceptions import HTTPException

from resmlp_mt.engines.guides import Guide, check_room
from resmlp_mt.errors import UserError
from resmlp_mt.serving.batcher import Batcher, QueueFull
from resmlp_mt.serving.house import House
from resmlp_mt.serving.jobs import Impossible, Options
from resmlp_mt.serving.limits import AnswerTooLarge, Limits
from resmlp_mt.serving.request import HELD, SEARCHED, too_many
from resmlp_mt.text.dividing import LINE_ENDS
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.glossary import Glossary
from resmlp_mt.translating.hypotheses import Hypothesis

# Characters of a request that take noticeably long to split, and how many such requests may wait.
_LONG, _LONG_WAITING = 20_000, 16
# How many times as long it may take where terms are looked for.
_LOOKING = 10
# Most lines of a request, for each text that the queue holds. Blank lines are not queued, but take
# time to split.
_BLANK = 10


@dataclass(frozen=True)
class Found:
    """What was found for a text.

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


class Desk:
    """Splits texts, queues them, and joins their translations.

    Args:
        batcher: Where texts wait.
        limits: What requests may ask.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher, self.limits = batcher, limits
        # Both run beside the event loop, so that other requests need not wait. A megabyte takes
        # seconds to split. Such requests wait for one another.
        self.quick, self.slow = ThreadPoolExecutor(4), ThreadPoolExecutor(1)
        self.long_waiting = 0

    async def translate(
        self,
        texts: list[str],
        options: Options,
        describe: Callable[[list[Found]], bytes],
        split_sentences: bool | None = None,
        recase: bool = True,
        are_items: bool = False,
        written: int = 0,
        glossary: Mapping[str, str] | None = None,
        house: House | None = None,
    ) -> bytes:
        """Translate texts. To cancel it ends the work for it.

        Args:
            texts: Raw text.
            options: By which model, and how.
            describe: Makes the answer, beside the event loop.
            split_sentences, recase: As for `Pipeline.split`. A prefix goes on in the case in
                which it was typed, so the text is then taken as typed too.
            are_items: Give no text a final stop that it lacks.
            written: Characters that `describe` reads or writes beside those of the texts.
            glossary: Terms, and what a translation shall hold for each.
            house: The terms of the house. Where they cannot be held, the texts go without.

        Raises:
            HTTPException: If the texts cannot be queued or translated so, or the answer is too
                large.
        """
        size = sum(map(len, texts))
        self.check_answer(size * options.search.nbest)
        size += len(options.prefix)
        to_read = size
        if glossary:
            if size > SEARCHED:
                raise too_many(size, SEARCHED, "characters with a glossary")
            # Terms are looked for wherever a word begins.
            to_read = _LOOKING * size + sum(map(len, [*glossary, *glossary.values()]))
        recase = recase and not options.prefix
        reading = dict(split_sentences=split_sentences, recase=recase, is_item=are_items)
        terms = glossary, house
        split = await self.read(to_read, self._split_now, texts, options, reading, *terms)
        segments = [segment for parts in split for segment in parts]
        try:
            job = self.batcher.submit(segments, options)
            found = await asyncio.wrap_future(job.answer)
            size += written
            answer = await self._run(size, lambda: describe(_join(texts, split, found, options)))
        except QueueFull:
            raise _too_busy() from None
        except AnswerTooLarge:
            raise self._too_large() from None
        except Impossible as error:
            raise HTTPException(422, str(error)) from None
        self.check_answer(len(answer))
        return answer

    def check_answer(self, size: int) -> None:
        """Check that an answer of so many bytes, or about so many, may be given.

        Raises:
            HTTPException: If it may not.
        """
        if size > self.limits.answer_bytes:
            raise self._too_large()

    async def read(self, size: int, function: Callable, *arguments):
        """Read texts of so many characters, beside the event loop.

        Raises:
            HTTPException: If too many long ones are read already.
        """
        if size <= _LONG:
            return await self._run(size, function, *arguments)
        if self.long_waiting == _LONG_WAITING:
            raise _too_busy()
        self.long_waiting += 1
        try:
            return await self._run(size, function, *arguments)
        finally:
            self.long_waiting -= 1

    def _run(self, size: int, function: Callable, *arguments) -> asyncio.Future:
        pool = self.quick if size <= _LONG else self.slow
        return asyncio.get_running_loop().run_in_executor(pool, function, *arguments)

    def _too_large(self) -> HTTPException:
        most = f"{self.limits.answer_bytes:,}"
        return HTTPException(413, f"the answer is larger than {most} bytes; ask for less")

    def _split_now(
        self,
        texts: list[str],
        options: Options,
        reading: dict[str, bool | None],
        terms: Mapping[str, str] | None,
        house: House | None,
    ) -> list[list[Segment]]:
        """The parts of texts."""
        most = self.limits.queue_size
        count = sum(text.count(end) for text in texts for end in LINE_ENDS)
        if count > _BLANK * most:
            raise too_many(count, _BLANK * most, "lines")
        begun = bool(options.prefix or options.alternatives)
        glossary = _read_terms(terms, options) if terms else None
        if house and not begun:
            of_house = house.read()
            glossary = glossary.over(of_house) if glossary else of_house
        split, count = [], 0
        for text in texts:
            parts = options.translator.split(text, begun=begun, glossary=glossary, **reading)
            count += max(1, len(parts))
            if count > most:
                raise too_many(count, most)
            for part in parts:
                _check_terms(part, options)
            split.append(parts)
        if begun:
            _check_beginning(sum(map(len, split)), options)
        return split


def _read_terms(terms: Mapping[str, str], options: Options) -> Glossary:
    try:
        return Glossary(terms, options.translator.codec)
    except UserError as error:
        raise HTTPException(422, str(error)) from None


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


def _join(
    texts: list[str],
    split: list[list[Segment]],
    found: list[list[Hypothesis]],
    options: Options,
) -> list[Found]:
    rest, results = iter(found), []
    for text, parts in zip(texts, split, strict=True):
        each = list(islice(rest, len(parts)))
        results.append(Found(text, options.translator.join(text, parts, each), parts, each))
    return results
