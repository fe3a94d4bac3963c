"""What a monitoring system may know of the server, in the format of Prometheus."""

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from resmlp_mt.serving.measure import Answered

# Where processes leave their counts for one another. prometheus_client reads it when it is first
# imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# The paths that are told apart; strangers' ones would fill the memory.
_PATHS = frozenset(
    "/ /translate /detect /languages /frontend/settings /health /healthz /metrics".split(" ")
)


class Metrics:
    """Counts requests and batches of this process, and shows those of all workers.

    There are several where the environment says where they leave their counts.
    """

    def __init__(self):
        disable_created_metrics()
        own = {"registry": CollectorRegistry()}
        self.requests = Counter("resmlp_requests", "Requests answered", ["path", "status"], **own)
        self.seconds = Histogram(
            "resmlp_request_seconds", "Time to answer", ["path"], buckets=SECONDS, **own
        )
        # A text too long for the model counts in parts. The sum of the sizes is all of them.
        self.batches = Histogram(
            "resmlp_batch_texts", "Texts translated together", buckets=TEXTS, **own
        )
        self.queue = Gauge(
            "resmlp_queue_texts", "Texts that wait", multiprocess_mode="livesum", **own
        )
        if FOLDER in os.environ:
            self.registry = gather(os.environ[FOLDER])
        else:
            self.registry = own["registry"]
            ProcessCollector(registry=self.registry)  # memory, processor time, open files

    def count(self, answered: Answered) -> None:
        """Count a request."""
        path = answered.path if answered.path in _PATHS else "other"
        self.requests.labels(path, answered.status).inc()
        self.seconds.labels(path).observe(answered.seconds)

    def render(self) -> bytes:
        """All of it as text."""
        return generate_latest(self.registry)


def gather(folder: str) -> CollectorRegistry:
    """What all workers counted that leave it in a folder."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)
    return registry
