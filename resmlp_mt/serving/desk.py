"""Where requests are read and answered: beside the event loop, so that others need not wait."""

import asyncio
from collections.abc import Callable

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from resmlp_mt.serving.batcher import Batcher, too_busy
from resmlp_mt.serving.jobs import Job, check_answer
from resmlp_mt.serving.settings import Limits

# Weight of what takes ten milliseconds, a character's being 1, and how many may wait with more.
_LONG, _LONG_WAITING = 3_000, 32


class Desk:
    """Reads texts, queues them, and joins their translations.

    A megabyte takes seconds to read. Such requests wait for one another.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher, self.limits = batcher, limits
        self.quick, self.slow = CapacityLimiter(2), CapacityLimiter(1)

    async def translate(self, weight: int, prepare: Callable[[], Job | bytes]) -> bytes:
        """Translate what a request asks: a job, or else an answer. To cancel it ends the work.

        Raises:
            HTTPException: If the texts cannot be queued or translated so, or the answer is too
                large.
        """

        def read() -> Job | bytes:
            if not isinstance(asked := prepare(), bytes):
                asked.read(self.limits)
            return asked

        if isinstance(job := await self.read(weight, read), bytes):
            return job
        await asyncio.wrap_future(self.batcher.submit(job).answer)
        answer = await self._run(weight + job.written, job.write)
        check_answer(len(answer), self.limits)  # of attention, and characters of several bytes
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
