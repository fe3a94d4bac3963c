"""What stands before the application: requests for another host, or too large, go no further."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import JSONResponse

from resmlp_mt.text.surrogates import mend_surrogates

# What a machine calls itself.
LOOPBACK = frozenset({"localhost"})
# How long the body of a request that was refused is read, to nowhere.
_DISCARD_SECONDS = 5


class CheckHost:
    """ASGI middleware: refuses requests that are meant for another host.

    A web page can make a name of its own point at this machine, and its visitors' browsers ask this
    server for it ("DNS rebinding"). Such requests carry that name. Addresses cannot be borrowed
    in this way, and are taken as they are.

    Args:
        app: What answers.
        names: The host's names.
    """

    def __init__(self, app, names: frozenset[str]):
        self.app, self.names = app, {name.lower() for name in names}

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            # Old programs, such as health checks, may send none. Every browser sends one.
            host = dict(scope["headers"]).get(b"host", b"localhost").decode("latin-1")
            if not self._is_own(host):
                message = "the Host header names no host of this server; see serve --allow-host"
                return await _refuse_body(400, message, scope, receive, send)
        return await self.app(scope, receive, send)

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name.removesuffix(".") in self.names:
            return True
        try:
            return bool(ip_address(name))
        except ValueError:
            return False


class MergeSlashes:
    """ASGI middleware: `//translate`, as clients write that add a slash, is `/translate`.

    Args:
        app: What answers.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            scope = scope | {"path": re.sub("//+", "/", scope["path"])}
        await self.app(scope, receive, send)


class AnswerHead:
    """ASGI middleware: what answers GET answers HEAD too.

    The server that runs the application sends the headers alone.

    Args:
        app: What answers.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = scope | {"method": "GET"}
        await self.app(scope, receive, send)


class Apologise:
    """ASGI middleware: what fails is answered with 500, and raised again for the server's log.

    Starlette answers failures outside of all middleware. So such an answer would not be counted,
    and browsers would keep it from the pages that may read the others.

    Args:
        app: What answers.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        started = False

        async def watch(part) -> None:
            nonlocal started
            started = True
            await send(part)

        try:
            await self.app(scope, receive, watch)
        except Exception:
            if scope["type"] == "http" and not started:
                message = "this failed, and not by your fault; the server's log says more"
                await refuse(500, message)(scope, receive, send)
            raise


class LimitBody:
    """ASGI middleware: bodies are read whole, within a size and a time, or refused.

    Args:
        app: What answers.
        size: Bytes of a body; more is answered with 413.
        seconds: Time for a body to arrive; longer is answered with 408.
    """

    def __init__(self, app, size: int, seconds: float):
        self.app, self.size, self.seconds = app, size, seconds

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if _has_two_ends(scope):
            message = "Transfer-Encoding is for HTTP/1.1, and without Content-Length"
            return await _refuse(400, message)(scope, receive, send)
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._read(scope, receive)
        except TimeoutError:
            return await _refuse(408, "the request did not arrive in time")(scope, receive, send)
        except ConnectionError:
            return None  # there is nobody to answer
        if body is None:
            message = f"the request is larger than {self.size:,} bytes; send several"
            return await _refuse_body(413, message, scope, receive, send)
        await self.app(scope, replay(body, receive), send)

    async def _read(self, scope, receive) -> bytes | None:
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if int(announced) > self.size:
            return None
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.size:
                return None
        return bytes(body)


def _has_two_ends(scope) -> bool:
    """Whether a proxy in front may see the end of the request elsewhere."""
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers and (
        b"content-length" in headers or scope["http_version"] == "1.0"
    )


def replay(body: bytes, receive: Callable) -> Callable:
    """What receives a body that was read, and then only that the client has left."""
    messages = iter([{"type": "http.request", "body": body}])

    async def receive_again():
        return next(messages, None) or await receive()

    return receive_again


def refuse(status: int, message: str, **headers: str) -> JSONResponse:
    """An answer that says what is wrong. The message may quote what no text can hold."""
    return JSONResponse({"error": mend_surrogates(message)}, status, headers=headers)


def _refuse(status: int, message: str) -> JSONResponse:
    # What is left of the body is not read: the connection cannot be used again.
    return refuse(status, message, Connection="close")


async def _refuse_body(status: int, message: str, scope, receive, send) -> None:
    """Refuse a request before its body was read.

    Most clients send all of a body before they read an answer. Where the connection is closed
    meanwhile, they see that and no answer.
    """

    async def send_and_discard(part) -> None:
        if part["type"] == "http.response.body":
            await send(part | {"more_body": True})  # its length was said: the client has it all
            with suppress(TimeoutError):
                async with asyncio.timeout(_DISCARD_SECONDS):
                    while (await receive()).get("more_body"):
                        pass
            part = {"type": "http.response.body"}
        await send(part)

    await _refuse(status, message)(scope, receive, send_and_discard)
