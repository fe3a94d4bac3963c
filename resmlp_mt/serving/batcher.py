"""The queue where the texts of all requests meet, and the workers that translate them in batches.

Nothing waits for a batch to fill: a free worker takes what is there. Under load texts come while
the workers are busy, and the batches grow by themselves.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass

from resmlp_mt.inference.translator import Hypothesis, Translator

logger = logging.getLogger(__name__)


class QueueFull(Exception):
    """More texts wait than the queue may hold."""


@dataclass(frozen=True)
class Options:
    """What texts must have in common to be translated together; as for `translate_nbest`."""

    beam: int = 5
    nbest: int = 1
    lenpen: float = 1.0
    attention: bool = False


class Batcher:
    """Translates texts as they come, none longer than the model takes.

    Args:
        translator: What translates; of one thread, as the workers are the threads.
        workers: Batches translated side by side.
        batch_size: Texts translated together.
        queue_size: Texts that may wait.
        observe: Told the size of each batch.
    """

    def __init__(
        self,
        translator: Translator,
        workers: int,
        batch_size: int,
        queue_size: int,
        observe: Callable[[int], None] = lambda size: None,
    ):
        self.translator, self.observe = translator, observe
        self.batch_size, self.queue_size = batch_size, queue_size
        self.waiting: deque[tuple[str, Options, Future]] = deque()
        self.changed = threading.Condition()
        self.closed = False
        self.workers = [
            threading.Thread(target=self._work, name=f"translate-{i}", daemon=True)
            for i in range(workers)
        ]
        for worker in self.workers:
            worker.start()

    def submit(self, texts: list[str], options: Options) -> list[Future]:
        """Queue texts, all or none; cancel what is no longer wanted.

        Returns:
            A future list of hypotheses for each.

        Raises:
            QueueFull: If there is no room for them now.
        """
        with self.changed:
            if self.closed or len(self.waiting) + len(texts) > self.queue_size:
                raise QueueFull
            futures = [Future() for _ in texts]
            self.waiting.extend((text, options, f) for text, f in zip(texts, futures, strict=True))
            self.changed.notify(len(texts))
        return futures

    def close(self) -> None:
        """Translate what waits, and end."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        for worker in self.workers:
            worker.join()

    def _work(self) -> None:
        while batch := self._take():
            texts, futures = zip(*((text, future) for text, _, future in batch), strict=True)
            self.observe(len(texts))
            options = batch[0][1]
            try:
                answers = self._translate(texts, options)
            except Exception:
                logger.exception("a batch of %d texts failed; each is tried alone", len(texts))
                answers = [None] * len(texts)
            for text, future, answer in zip(texts, futures, answers, strict=True):
                try:
                    # One that cannot be translated must not take the others with it.
                    future.set_result(answer or self._translate([text], options)[0])
                except Exception as error:
                    future.set_exception(error)

    def _take(self) -> list[tuple[str, Options, Future]]:
        """The next texts with the same options; none when closed and all is done."""
        batch: list[tuple[str, Options, Future]] = []
        with self.changed:
            while not batch:
                while not self.waiting and not self.closed:
                    self.changed.wait()
                if not self.waiting:
                    break
                while self.waiting and len(batch) < self.batch_size:
                    if batch and self.waiting[0][1] != batch[0][1]:
                        break
                    entry = self.waiting.popleft()
                    if entry[2].set_running_or_notify_cancel():
                        batch.append(entry)
        return batch

    def _translate(self, texts: list[str], options: Options) -> list[list[Hypothesis]]:
        found = self.translator.translate_nbest(
            texts, **asdict(options), buffer_size=len(texts), split_sentences=False
        )
        return list(found)
