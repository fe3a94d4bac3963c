"""Forms and queries as LibreTranslate's clients send them, read as the JSON that says the same."""

import codecs
import json
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, parse_options_header
from starlette.requests import Request

from resmlp_mt.serving.middleware import refuse, replay

_PATHS = ("/translate", "/detect")
_MOST_FIELDS = 20
# Others may take a time that goes by the square of the length.
_CHARSETS = ("utf-8", "ascii", "iso8859-1")


class FormsAsJson:
    """ASGI middleware: what answers sees JSON alone.

    The query has fields too, beside a form or where there is no body. JSON has all of its own.

    Args:
        app: What answers.
        size: Bytes of a body.
        is_known: Whether fields are to be read so; others are left as they came.
    """

    def __init__(self, app, size: int, is_known: Callable[[dict], bool]):
        self.app, self.size, self.is_known = app, size, is_known

    async def __call__(self, scope, receive, send) -> None:
        """Answer a request."""
        headers = dict(scope.get("headers", ()))
        kind = headers.get(b"content-type", b"")
        is_json = kind.partition(b";")[0].strip().lower().endswith(b"json")
        if scope["type"] != "http" or scope["path"] not in _PATHS or is_json:
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        if not _is_readable(kind):
            return await refuse(400, "Invalid request: send UTF-8")(scope, receive, send)
        try:
            form = await request.form(max_files=0, max_fields=_MOST_FIELDS, max_part_size=self.size)
            query = request.query_params
            fields = dict(query) | dict(form)
            if len(texts := form.getlist("q") or query.getlist("q")) > 1:
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
