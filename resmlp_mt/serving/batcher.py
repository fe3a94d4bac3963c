"""The queue where the texts of all requests meet, and the threads that translate them in slices.

Nothing waits for a batch to fill: a free thread takes what is there. Under load texts come while
the threads are busy, and the batches grow by themselves. A batch is a slice of some tenths of a
second at most, and what is left of a request goes back to the queue. There the request comes first
that least was done for, so that one of a sentence waits for a slice, and not for long requests.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush

from starlette.exceptions import HTTPException

from resmlp_mt.engines.search.stopping import Stopped, check_wanted, stop_when
from resmlp_mt.serving.jobs import Job, check_answer, is_mistake
from resmlp_mt.serving.settings import USUAL_BEAM, Limits

logger = logging.getLogger(__name__)
# Subwords of the sentences that a slice has `batch_size` of.
_LENGTH = 12
# Weight of what takes ten milliseconds, a character's being 1, and how many may wait with more.
_LONG, _LONG_WAITING = 3_000, 32


def too_busy() -> HTTPException:
    """The answer where more waits than may."""
    return HTTPException(429, "too many texts wait; try again", headers={"Retry-After": "1"})


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
        """Queue the segments of a job, all or none; HTTPException if there is no room now."""
        with self.changed:
            if self.closed or self.waiting + len(job.segments) > self.limits.queue_size:
                raise too_busy()
            if not job.segments:
                job.end()
            self.jobs = [other for other in self.jobs if not other.answer.done()] + [job]
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
            self._translate(batch)

    def _take(self) -> list[tuple[Job, int]]:
        """The next texts with the same options, by job and index; none when all is done."""
        with self.changed:
            while not (jobs := [job for job in self.jobs if job.waiting]) and not self.closed:
                self.changed.wait()
            first = min(jobs, key=lambda job: job.spent, default=None)
            turns = sorted((job.spent, i) for i, job in enumerate(jobs) if job.way == first.way)
            batch: list[tuple[Job, int]] = []
            left = self.slice
            while turns and len(batch) < self.limits.batch_size:
                job = jobs[i := heappop(turns)[1]]
                cost = min(job.costs[job.taken], self.slice)
                if batch and (cost > left or first.alternatives):
                    break
                left -= cost
                batch.append((job, job.taken))
                job.spent += cost
                job.taken += 1
                if job.waiting:
                    heappush(turns, (job.spent, i))
        return batch

    def _observe(self, _: Future | None = None) -> None:
        self.observe_queue(self.waiting)

    def _translate(self, batch: list[tuple[Job, int]]) -> None:
        """Give each job its translations, or the error. Stop when all its jobs were cancelled."""
        first, segments = batch[0][0], [job.segments[i] for job, i in batch]
        try:
            search = first.running or first.translate(segments)
            with stop_when(lambda: all(job.answer.done() for job, _ in batch)):
                # One after the other: the attention of all of them may be larger than memory.
                for job, index in batch:
                    check_wanted()
                    found = next(search)
                    with self.changed:
                        if found is None:  # the only text of its job goes back
                            job.running, job.taken = search, 0
                            self.changed.notify()
                            return
                        job.found[index] = found
                        if None not in job.found:
                            job.end()
        except Stopped:
            logger.info("a batch of %d texts was abandoned", len(batch))
        except Exception as error:
            if len(batch) == 1:
                with self.changed:
                    return first.end(error)
            if not is_mistake(error):
                logger.exception("a batch of %d texts failed; each is tried alone", len(batch))
            # One that cannot be translated must not take the others with it.
            for job, index in batch:
                if job.found[index] is None:
                    self._translate([(job, index)])


class Desk:
    """Reads and answers requests beside the event loop, so that others need not wait.

    A megabyte takes seconds to read. Such requests wait for one another.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher, self.limits = batcher, limits
        # Those of anyio would take more of the processor's time for each request.
        self.quick, self.slow, self.long = ThreadPoolExecutor(2), ThreadPoolExecutor(1), 0

    async def translate(self, weight: int, prepare: Callable[[], Job]) -> bytes:
        """The answer to the request that `prepare` makes a job of. To cancel it ends the work.

        Raises:
            HTTPException: If that cannot be queued or translated, or the answer is too large.
        """
        job = await self.read(weight, lambda: prepare().read(self.limits))
        await asyncio.wrap_future(self.batcher.submit(job).answer)
        answer = await self._run(weight + job.written, job.write)
        check_answer(len(answer), self.limits)  # of attention, and characters of several bytes
        return answer

    async def read(self, weight: int, function: Callable, *arguments):
        """Run a function that reads so much; HTTPException if too much waits that is long."""
        is_long = weight > _LONG
        if is_long and self.long == _LONG_WAITING:
            raise too_busy()
        self.long += is_long
        try:
            return await self._run(weight, function, *arguments)
        finally:
            self.long -= is_long

    def _run(self, weight: int, function: Callable, *arguments) -> asyncio.Future:
        pool = self.quick if weight <= _LONG else self.slow
        return asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
