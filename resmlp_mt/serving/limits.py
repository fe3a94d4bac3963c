"""What a request may ask of the server, enforced before a byte of it is kept."""

import asyncio

from starlette.responses import JSONResponse


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
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._read(scope, receive)
        except TimeoutError:
            return await _refuse(408, "the request did not arrive in time")(scope, receive, send)
        except ConnectionError:
            return None  # there is nobody to answer
        if body is None:
            message = f"the request is larger than {self.size:,} bytes; send several"
            return await _refuse(413, message)(scope, receive, send)
        messages = iter([{"type": "http.request", "body": body}])

        async def replay():
            return next(messages, None) or await receive()  # then only that the client has left

        await self.app(scope, replay, send)

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


def refuse(status: int, message: str, **headers: str) -> JSONResponse:
    """An answer that says what is wrong."""
    return JSONResponse({"error": message}, status, headers=headers)


def _refuse(status: int, message: str) -> JSONResponse:
    # What is left of the body is not read: the connection cannot be used again.
    return refuse(status, message, Connection="close")
