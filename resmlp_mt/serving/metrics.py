"""Figures of the service for a monitoring system, in the format of Prometheus."""

import os
import re
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

# Where workers leave their counts for one another. prometheus_client reads it when it is imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# The paths that are told apart; strangers' ones would fill the memory.
_PATHS = frozenset(
    "/ /translate /detect /languages /frontend/settings /health /healthz /metrics".split()
)


class Metrics:
    """Counts requests and batches of this worker, and shows those of all workers."""

    def __init__(self):
        disable_created_metrics()
        own = {"registry": CollectorRegistry()}
        self.requests = Counter("resmlp_requests", "Requests answered", ["path", "status"], **own)
        self.seconds = Histogram(
            "resmlp_request_seconds", "Time to answer", ["path"], buckets=_SECONDS, **own
        )
        # A text too long for the model counts in parts. The sum of the sizes is all of them.
        self.batches = Histogram(
            "resmlp_batch_texts", "Texts translated together", buckets=_TEXTS, **own
        )
        self.queue = Gauge(
            "resmlp_queue_texts", "Texts that wait", multiprocess_mode="livesum", **own
        )
        self.registry = own["registry"]
        if folder := os.environ.get(FOLDER):
            _forget_dead(Path(folder))
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry, folder)
        else:
            ProcessCollector(registry=self.registry)  # memory, processor time, open files

    def count(self, path: str, status: str, seconds: float) -> None:
        """Count a request; `status` is "none" if the client left before the answer."""
        path = path if path in _PATHS else "other"
        self.requests.labels(path, status).inc()
        self.seconds.labels(path).observe(seconds)

    def render(self) -> bytes:
        """All of it as text."""
        return generate_latest(self.registry)


def _forget_dead(folder: Path) -> None:
    """Forget what waits with workers that were killed; what they counted stays."""
    for file in folder.glob("gauge_live*.db"):
        pid = int(re.search(r"(\d+)\.db$", file.name)[1])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(folder))
