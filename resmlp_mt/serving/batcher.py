"""The queue where the texts of all requests meet, and the threads that translate them in batches.

Nothing waits for a batch to fill: a free thread takes what is there. Under load texts come while
the threads are busy, and the batches grow by themselves. Requests share the batches: each gives one
text in turn, so that a short request never waits for all of a long one.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from resmlp_mt.engines.search.stopping import Stopped, check_wanted, stop_when
from resmlp_mt.serving.jobs import Impossible, Job, Options
from resmlp_mt.serving.request import USUAL_BEAM
from resmlp_mt.text.segments import Segment

logger = logging.getLogger(__name__)


class QueueFull(Exception):
    """More texts wait than the queue may hold."""


class Batcher:
    """Translates texts as they come, none longer than the model takes.

    Args:
        threads: Batches that are translated side by side.
        batch_size: Texts translated together at the usual beam. A wider beam makes batches smaller
            by as much, so that none takes longer than a usual one.
        queue_size: Texts that may wait.
        answer_bytes: About what the translations of a job may take as JSON.
        observe_batch: Told the size of each batch.
        observe_queue: Told how many texts wait, when that has changed.
    """

    def __init__(
        self,
        threads: int,
        batch_size: int,
        queue_size: int,
        answer_bytes: int,
        observe_batch: Callable[[int], None] = lambda size: None,
        observe_queue: Callable[[int], None] = lambda waiting: None,
    ):
        self.observe_batch, self.observe_queue = observe_batch, observe_queue
        self.batch_size, self.queue_size = batch_size, queue_size
        self.answer_bytes = answer_bytes
        self.jobs: list[Job] = []  # in the order of their turns
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

    def submit(self, segments: list[Segment], options: Options) -> Job:
        """Queue segments, all or none.

        Args:
            segments: What is to be translated.
            options: By which model, and how.

        Raises:
            QueueFull: If there is no room for them now.
        """
        job = Job(segments, options, self.answer_bytes)
        if not segments:
            job.answer.set_result([])
        with self.changed:
            if self.closed or self.waiting + len(segments) > self.queue_size:
                raise QueueFull
            self.jobs = [*self._wanted(), job]
            self.changed.notify(len(segments))
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
                if not isinstance(error, Impossible):
                    logger.exception("a batch of %d texts failed; each is tried alone", len(batch))
                for job, index in batch:
                    # One that cannot be translated must not take the others with it.
                    try:
                        if job.found[index] is None:
                            self._translate([(job, index)])
                    except Exception as error:
                        with self.changed:
                            job.fail(error)

    def _take(self) -> list[tuple[Job, int]]:
        """The next texts with the same options, by job and index; none when all is done."""
        with self.changed:
            while not (jobs := self._wanted()) and not self.closed:
                self.changed.wait()
            if not jobs:
                return []
            options = jobs[0].next_options
            alike = [job for job in jobs if job.next_options == options]
            kind = {id(job) for job in alike}
            room = max(1, self.batch_size * USUAL_BEAM // max(options.beams, USUAL_BEAM))
            batch: list[tuple[Job, int]] = []
            while alike and len(batch) < room:
                for job in alike[: room - len(batch)]:
                    batch.append((job, job.take()))
                alike = [job for job in alike if job.waiting and job.next_options == options]
            # Jobs of this kind go behind the others, and those that were served to the end.
            served = {id(job) for job, _ in batch}
            self.jobs = sorted(jobs, key=lambda job: (id(job) in kind) + (id(job) in served))
        return batch

    def _observe(self, _: Future | None = None) -> None:
        self.observe_queue(self.waiting)

    def _wanted(self) -> list[Job]:
        return [job for job in self.jobs if job.waiting]

    def _translate(self, batch: list[tuple[Job, int]]) -> None:
        """Give each job its translations. Stop when all of its jobs were cancelled."""
        job, index = batch[0]
        options = job.get_options(index)
        segments = [job.segments[i] for job, i in batch]
        try:
            with stop_when(lambda: all(job.answer.done() for job, _ in batch)):
                found = options.translate(segments)
                # One after the other: the attention of all of them may be larger than memory.
                for job, index in batch:
                    check_wanted()
                    hypotheses = next(found)
                    with self.changed:
                        job.put(index, hypotheses)
        except Stopped:
            logger.info("a batch of %d texts was abandoned", len(batch))
