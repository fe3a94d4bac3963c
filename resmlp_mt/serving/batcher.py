"""The queue where the texts of all requests meet, and the threads that translate them in slices.

Nothing waits for a batch to fill: a free thread takes what is there. Under load texts come while
the threads are busy, and the batches grow by themselves. A batch is a slice of some tenths of a
second at most, and what is left of a request goes back to the queue. There the request comes first
that least was done for, so that one of a sentence waits for a slice, and not for long requests.
"""

import heapq
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.stopping import Stopped, check_wanted, stop_when
from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.serving.settings import USUAL_BEAM, Limits
from resmlp_mt.text.segments import Segment
from resmlp_mt.translating.alternatives import MORE, find_alternatives
from resmlp_mt.translating.hypotheses import Hypothesis
from resmlp_mt.translating.translator import Translator

logger = logging.getLogger(__name__)
# Subwords of the sentences that a slice has `batch_size` of.
_LENGTH = 12
# What is more than a plain beam search is done by fairseq. Two texts that hold few words then take
# about as long as 64 of a plain search.
_FAIRSEQ = 32


def too_busy() -> HTTPException:
    """The answer where more waits than may."""
    return HTTPException(429, "too many texts wait; try again", headers={"Retry-After": "1"})


@dataclass(frozen=True)
class Options:
    """Options that segments must share to be translated together."""

    translator: Translator
    search: SearchOptions = SearchOptions(beam=USUAL_BEAM)
    attention: bool = False
    prefix: str = ""  # of all segments: there is one
    alternatives: bool = False

    @property
    def is_begun(self) -> bool:
        """Whether translations go on behind a given beginning."""
        return bool(self.prefix or self.alternatives)

    def weigh(self, segment: Segment) -> int:
        """About the steps that the search of a segment takes, of all its beams."""
        beams = self.search.beam * (MORE * self.search.nbest if self.alternatives else 1)
        is_plain = self.search.is_plain and not segment.held
        return (beams if is_plain else beams * _FAIRSEQ) * (len(segment.pieces) + 1)

    def translate(self, segments: list[Segment]) -> Iterator[list[Hypothesis] | None]:
        """Yield the translations of each segment; None where other work may come in between.

        Raises:
            HTTPException: If more than a plain search was asked for, or terms must be held, and
                that cannot be had.
        """
        translator, search = self.translator, self.search
        try:
            if self.alternatives:
                asked = segments, search, self.prefix, self.attention
                yield from find_alternatives(translator, *asked)
                return
            guides = None
            if self.prefix:
                guides = [Guide(translator.codec.encode_target(self.prefix))] * len(segments)
            # The batches side by side are those of this queue.
            yield from translator.translate_segments(
                segments, search, attention=self.attention, guides=guides, threads=1
            )
        except BrokenModel:
            raise
        except UserError as error:
            holds = any(segment.wanted for segment in segments)
            if search.is_plain and not holds:
                raise
            raise HTTPException(422, "glossary: " * holds + str(error)) from None


@dataclass(eq=False)
class Job:
    """The segments of one request.

    Attributes:
        answer: Done when all are translated: a list of hypotheses for each. Cancel it when it is
            wanted no more.
        spent: Steps of beams that were searched for it.
        search: What is left of one that is done in slices.
    """

    segments: list[Segment]
    options: Options
    answer: Future = field(default_factory=Future)
    spent: int = 0
    taken: int = 0
    search: Iterator | None = None

    def __post_init__(self):
        self.found: list[list[Hypothesis] | None] = [None] * len(self.segments)
        self.costs = list(map(self.options.weigh, self.segments))

    @property
    def waiting(self) -> int:
        """Texts that wait for a thread, without those of cancelled jobs."""
        return 0 if self.answer.done() else len(self.segments) - self.taken

    def end(self, error: Exception | None = None) -> None:
        """Answer, with what was found or an error; called with the batcher's lock."""
        if self.answer.done() or not self.answer.set_running_or_notify_cancel():
            return
        if error:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(self.found)


class Batcher:
    """Translates texts as they come, none longer than the model takes.

    The observers are told the size of each batch, and how many texts wait when that has changed.
    """

    def __init__(
        self,
        threads: int,
        limits: Limits,
        observe_batch: Callable[[int], None] = lambda size: None,
        observe_queue: Callable[[int], None] = lambda waiting: None,
    ):
        self.limits, self.slice = limits, limits.batch_size * USUAL_BEAM * _LENGTH
        self.observe_batch, self.observe_queue = observe_batch, observe_queue
        self.jobs: list[Job] = []
        self.changed = threading.Condition()
        self.closed = False
        self.threads = [
            threading.Thread(target=self._work, name=f"translate-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Texts that wait for a thread, without those of cancelled jobs."""
        return sum(job.waiting for job in self.jobs)

    def submit(self, job: Job) -> Job:
        """Queue the segments of a job, all or none.

        Raises:
            HTTPException: If there is no room for them now.
        """
        with self.changed:
            if self.closed or self.waiting + len(job.segments) > self.limits.queue_size:
                raise too_busy()
            if not job.segments:
                job.end()
            self.jobs = [*self._wanted(), job]
            self.changed.notify(len(job.segments))
        self._observe()
        job.answer.add_done_callback(self._observe)  # it may be cancelled while it waits
        return job

    def close(self) -> None:
        """Translate what waits, and end."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def _work(self) -> None:
        while batch := self._take():
            self.observe_batch(len(batch))
            self._observe()
            try:
                self._translate(batch)
            except Exception as error:
                if not isinstance(error, HTTPException):
                    logger.exception("a batch of %d texts failed; each is tried alone", len(batch))
                for job, index in batch:
                    # One that cannot be translated must not take the others with it.
                    try:
                        if job.found[index] is None:
                            job.search = None
                            self._translate([(job, index)])
                    except Exception as error:
                        with self.changed:
                            job.end(error)

    def _take(self) -> list[tuple[Job, int]]:
        """The next texts with the same options, by job and index; none when all is done."""
        with self.changed:
            while not (jobs := self._wanted()) and not self.closed:
                self.changed.wait()
            self.jobs = jobs
            options = min(jobs, key=lambda job: job.spent).options if jobs else None
            turns = [(job.spent, i) for i, job in enumerate(jobs) if job.options == options]
            heapq.heapify(turns)
            batch: list[tuple[Job, int]] = []
            left = self.slice
            while turns and len(batch) < self.limits.batch_size:
                job = jobs[(i := turns[0][1])]
                cost = min(job.costs[job.taken], self.slice)
                if batch and (cost > left or options.alternatives):
                    break
                left -= cost
                batch.append((job, job.taken))
                job.spent += cost
                job.taken += 1
                if job.waiting:
                    heapq.heapreplace(turns, (job.spent, i))
                else:
                    heapq.heappop(turns)
        return batch

    def _observe(self, _: Future | None = None) -> None:
        self.observe_queue(self.waiting)

    def _wanted(self) -> list[Job]:
        return [job for job in self.jobs if job.waiting]

    def _translate(self, batch: list[tuple[Job, int]]) -> None:
        """Give each job its translations. Stop when all of its jobs were cancelled."""
        first, segments = batch[0][0], [job.segments[i] for job, i in batch]
        search = first.search or first.options.translate(segments)
        try:
            with stop_when(lambda: all(job.answer.done() for job, _ in batch)):
                # One after the other: the attention of all of them may be larger than memory.
                for job, index in batch:
                    check_wanted()
                    found = next(search)
                    with self.changed:
                        if found is None:  # the only text of its job goes back
                            self.jobs = [other for other in self.jobs if other is not job] + [job]
                            job.search, job.taken = search, 0
                            self.changed.notify()
                            return
                        job.found[index] = found
                        if None not in job.found:
                            job.end()
        except Stopped:
            logger.info("a batch of %d texts was abandoned", len(batch))
