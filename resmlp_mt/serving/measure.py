"""What there is to know of a request once it is answered."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Answered:
    """A request, and how it was answered.

    Attributes:
        client: Its address; "-" if it is not known.
        method, path, version: Of its first line, without a query, which may hold a key.
        status: Of the answer; "none" if the client left before.
        size: Bytes of the answer's body.
        seconds: Time to answer.
    """

    client: str
    method: str
    path: str
    version: str
    status: str
    size: int
    seconds: float


class Measure:
    """ASGI middleware: times requests, and tells of them.

    Args:
        app: What answers.
        tell: Whom to tell of each request.
    """

    def __init__(self, app, tell: Sequence[Callable[[Answered], None]]):
        self.app, self.tell = app, tell

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        status, size, start = "none", 0, time.perf_counter()

        async def watch(message):
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = str(message["status"])
            if scope["method"] != "HEAD":  # nothing of the body is sent
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            answered = Answered(
                client=scope["client"][0] if scope.get("client") else "-",
                method=scope["method"],
                path=scope["path"],
                version=scope["http_version"],
                status=status,
                size=size,
                seconds=time.perf_counter() - start,
            )
            for tell in self.tell:
                tell(answered)
