"""What a monitoring system may know of the server, in the format of Prometheus."""

import time

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts requests and batches of one server."""

    def __init__(self):
        disable_created_metrics()
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, processor time, open files
        own = dict(registry=self.registry)
        self.requests = Counter("resmlp_requests", "Requests answered", ["path", "status"], **own)
        self.seconds = Histogram(
            "resmlp_request_seconds", "Time to answer", ["path"], buckets=SECONDS, **own
        )
        # A text too long for the model counts in parts. The sum of the sizes is all of them.
        self.batches = Histogram(
            "resmlp_batch_texts", "Texts translated together", buckets=TEXTS, **own
        )
        self.queue = Gauge("resmlp_queue_texts", "Texts that wait", **own)

    def render(self) -> bytes:
        """All of it as text."""
        return generate_latest(self.registry)


class Measure:
    """ASGI middleware: counts and times the requests to some paths, all others as one.

    Args:
        app: What answers.
        metrics: Where to count.
        paths: The paths told apart; strangers' ones would fill the memory.
    """

    def __init__(self, app, metrics: Metrics, paths: frozenset[str]):
        self.app, self.metrics, self.paths = app, metrics, paths

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path = scope["path"] if scope["path"] in self.paths else "other"
        status, start = "none", time.perf_counter()  # none: the client left before

        async def watch(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)
