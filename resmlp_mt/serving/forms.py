"""Forms as LibreTranslate's clients send them, read as the JSON that says the same."""

import codecs
import json
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, parse_options_header
from starlette.requests import Request

from resmlp_mt.serving.middleware import refuse, replay

_KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
_PATHS = ("/translate", "/detect")
_MOST_FIELDS = 20
# Others may take a time that goes by the square of the length.
_CHARSETS = ("utf-8", "ascii", "iso8859-1")


class FormsAsJson:
    """ASGI middleware: what answers sees JSON alone.

    Args:
        app: What answers.
        size: Bytes of a body.
        is_known: Whether fields are those of a form; others are left as they came.
    """

    def __init__(self, app, size: int, is_known: Callable[[dict], bool]):
        self.app, self.size, self.is_known = app, size, is_known

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        headers = dict(scope.get("headers", ()))
        kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0]
        is_form = scope["type"] == "http" and kind.strip().lower() in _KINDS
        if not is_form or scope["path"] not in _PATHS:
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        if not _is_readable(headers[b"content-type"]):
            return await refuse(400, "Invalid request: send UTF-8")(scope, receive, send)
        try:
            form = await request.form(max_files=0, max_fields=_MOST_FIELDS, max_part_size=self.size)
            fields = dict(request.query_params) | dict(form)
            if len(texts := form.getlist("q")) > 1:
                fields["q"] = texts
        except (MultiPartException, HTTPException, UnicodeError):
            return await refuse(400, "Invalid request: not a form")(scope, receive, send)
        if self.is_known(fields):
            body = json.dumps(fields).encode()
            headers |= {b"content-type": b"application/json"}
            headers |= {b"content-length": str(len(body)).encode()}
            scope = scope | {"headers": list(headers.items())}
        await self.app(scope, replay(body, receive), send)


def _is_readable(content_type: bytes) -> bool:
    """Whether the charset, as starlette finds it, is one that decodes any text at once."""
    charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8")
    try:
        return codecs.lookup(charset.decode("latin-1")).name in _CHARSETS
    except LookupError:  # which starlette takes for latin-1
        return True
