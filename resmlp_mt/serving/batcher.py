"""The queue where the texts of all requests meet, and the threads that translate them in batches.

Nothing waits for a batch to fill: a free thread takes what is there. Under load texts come while
the threads are busy, and the batches grow by themselves. Requests share the batches: each gives one
text in turn, so that a short request never waits for all of a long one.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from resmlp_mt.inference.alternatives import MORE, find_alternatives
from resmlp_mt.inference.guides import Guide
from resmlp_mt.inference.hypotheses import Hypothesis
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.segments import Segment
from resmlp_mt.inference.stopping import Stopped, check_wanted, stop_when
from resmlp_mt.inference.translator import Translator
from resmlp_mt.serving.limits import AnswerTooLarge
from resmlp_mt.serving.request import USUAL_BEAM

logger = logging.getLogger(__name__)

# Bytes of a weight in JSON: "0.1234, ".
_WEIGHT = 8


class QueueFull(Exception):
    """More texts wait than the queue may hold."""


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
        """Hypotheses that are kept for a segment at once, at most."""
        return self.search.beam * (MORE * self.search.nbest if self.alternatives else 1)

    def translate(self, segments: list[Segment]) -> Iterator[list[Hypothesis]]:
        """Yield the translations of each segment."""
        if self.alternatives:
            return find_alternatives(
                self.translator, segments, self.search, self.prefix, self.attention
            )
        led = {}
        if self.prefix:
            guide = Guide(self.translator.codec.encode_target(self.prefix))
            led["guides"] = [guide] * len(segments)
        # The batches side by side are those of this queue.
        return self.translator.translate_segments(
            segments, self.search, attention=self.attention, threads=1, **led
        )


@dataclass(eq=False)
class Job:
    """The segments of one request.

    `answer` is done when all are translated: a list of hypotheses for each. Cancel it when it is
    wanted no more.
    """

    segments: list[Segment]
    options: Options
    room: int  # bytes that the answer may still grow by
    answer: Future = field(default_factory=Future)
    taken: int = 0

    def __post_init__(self):
        self.found: list[list[Hypothesis] | None] = [None] * len(self.segments)
        self.missing = len(self.segments)

    @property
    def waiting(self) -> int:
        """Texts that wait for a thread, without those of cancelled jobs."""
        return 0 if self.answer.done() else len(self.segments) - self.taken

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
            except Exception:
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
            options = jobs[0].options
            alike = [job for job in jobs if job.options == options]
            room = max(1, self.batch_size * USUAL_BEAM // max(options.beams, USUAL_BEAM))
            batch: list[tuple[Job, int]] = []
            while alike and len(batch) < room:
                for job in alike[: room - len(batch)]:
                    batch.append((job, job.taken))
                    job.taken += 1
                alike = [job for job in alike if job.waiting]
            # Jobs that were served go behind those that were not.
            served = {id(job) for job, _ in batch}
            self.jobs = sorted(jobs, key=lambda job: id(job) in served)
        return batch

    def _observe(self, _: Future | None = None) -> None:
        self.observe_queue(self.waiting)

    def _wanted(self) -> list[Job]:
        return [job for job in self.jobs if job.waiting]

    def _translate(self, batch: list[tuple[Job, int]]) -> None:
        """Give each job its translations. Stop when all of its jobs were cancelled."""
        segments, options = [job.segments[i] for job, i in batch], batch[0][0].options
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


def _weigh(hypothesis: Hypothesis) -> int:
    """About the bytes of a translation in JSON."""
    weights = sum(attention.weights.size for attention in hypothesis.attention)
    return 50 + len(hypothesis.text.encode()) + _WEIGHT * weights
