"""The middleware before the application, and the line that the log has of a request."""

import logging
import re
import time
from ipaddress import ip_address
from itertools import count
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse

from resmlp_mt.serving.metrics import Metrics
from resmlp_mt.text.surrogates import mend_surrogates

# Of so many answers one ends its connection, so that kept ones come to a worker that is new.
_LAST = 100
# Characters of a message, which may quote the request.
_SAID = 200


def refuse(status: int, message: str, **headers: str) -> JSONResponse:
    """An answer that says what is wrong. The message may quote what no text can hold."""
    return JSONResponse({"error": mend_surrogates(message)[:_SAID]}, status, headers=headers)


class Front:
    """ASGI middleware: counts requests, and ends a connection now and then.

    It takes `//translate`, as clients write that add a slash, for `/translate`, and HEAD for GET:
    the server sends the head alone.

    Args:
        app: What answers.
        metrics: Where to count.
        metrics_port: Where /metrics is, and nothing else; None if it has no port of its own.
    """

    def __init__(self, app, metrics: Metrics, metrics_port: int | None):
        self.app, self.metrics, self.metrics_port = app, metrics, metrics_port
        self.answers = count(1)

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        status, start = "none", time.perf_counter()
        path = re.sub("//+", "/", scope["path"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]

        async def watch(message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                if next(self.answers) % _LAST == 0:
                    message = message | {"headers": [*message["headers"], _CLOSE]}
            await send(message)

        app, port = self.app, self.metrics_port
        if port is not None and (scope["server"][1] == port) != (path == "/metrics"):
            app = refuse(404, "Not Found")
        try:
            await app(scope | {"path": path, "method": method}, receive, watch)
        finally:
            self.metrics.count(path, status, time.perf_counter() - start)


_CLOSE = (b"connection", b"close")


class CheckHost(TrustedHostMiddleware):
    """ASGI middleware: refuses requests that are meant for another host.

    A web page can make a name of its own point at this machine, and its visitors' browsers ask this
    service for it ("DNS rebinding"). Such requests carry that name. Addresses cannot be borrowed in
    this way, and probes of containers use them, so that they are taken as they are.
    """

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        checks = scope["type"] == "http" and not _is_address(Headers(scope=scope).get("host", ""))
        await (super().__call__ if checks else self.app)(scope, receive, send)


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(urlsplit(f"//{host}").hostname or ""))
    except ValueError:
        return False


class Discreet(logging.Filter):
    """Keeps queries, which may hold texts and keys, and what no address is out of uvicorn's log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line of a request; X-Forwarded-For may hold whatever a client likes."""
        client, method, path, *rest = record.args
        client = client if re.fullmatch(r"[0-9A-Fa-f:.]+", client) else "-"
        record.args = client, method, path.partition("?")[0], *rest
        return True
