"""The HTTP interface: /translate, /healthz, /metrics, /docs, and the page at /."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Discriminator, Tag
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import resmlp_mt
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.serving.answer import TranslationResponse, write_results
from resmlp_mt.serving.batcher import Batcher
from resmlp_mt.serving.desk import Desk, Found
from resmlp_mt.serving.forms import FormsAsJson
from resmlp_mt.serving.jobs import Options
from resmlp_mt.serving.keys import Keys, find_key
from resmlp_mt.serving.libretranslate import (
    LibreRequest,
    LibreResponse,
    LibreTranslate,
    build_router,
    explain_as_libretranslate,
    is_libretranslate,
)
from resmlp_mt.serving.limits import Limits
from resmlp_mt.serving.measure import Answered, Measure
from resmlp_mt.serving.metrics import Metrics
from resmlp_mt.serving.middleware import (
    LOOPBACK,
    AnswerHead,
    Apologise,
    CheckHost,
    LimitBody,
    MergeSlashes,
    refuse,
)
from resmlp_mt.serving.models import Models
from resmlp_mt.serving.request import (
    TranslationRequest,
    explain,
    explain_unreadable,
    limit_request,
    set_limits,
)

PAGE = Path(__file__).parent / "page"
# The page needs nothing but what lies beside it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}

# All that FastAPI says of a body that is not UTF-8, or nested too deeply; it keeps the cause.
_UNREADABLE = "There was an error parsing the body"


class _Page(StaticFiles):
    """The files of the page, with its headers: a browser must not mix those of two versions."""

    def file_response(self, *arguments, **options) -> Response:
        """A file, or that it has not changed."""
        response = super().file_response(*arguments, **options)
        response.headers.update(_PAGE_HEADERS)
        return response


class Problem(BaseModel):
    """What is wrong."""

    error: str


PROBLEMS = {
    400: "The request is not text, or not for this host; or not as LibreTranslate's are.",
    403: "The request needs an API key.",
    408: "The request did not arrive in time.",
    413: "The request or its answer is too large.",
    422: "The request is not as described here.",
    429: "Too many texts wait, or come with this key; try again after Retry-After seconds.",
    500: "The server failed.",
    503: "Not translated in time; try again after Retry-After seconds.",
}


def build_app(
    models: Models,
    limits: Limits,
    metrics: Metrics | None = None,
    hosts: frozenset[str] = LOOPBACK,
    origins: Sequence[str] = (),
    keys: Keys | None = None,
    log: Callable[[Answered], None] | None = None,
    shows_metrics: bool = True,
) -> FastAPI:
    """The application, to be run by an ASGI server.

    Args:
        models: What translates.
        limits: What requests may ask.
        metrics: Where to count.
        hosts: Names that requests may call the server by.
        origins: Whose pages browsers let read the answers; "*" for all.
        keys: Who may ask, if not all may.
        log: Told of each request.
        shows_metrics: Whether /metrics is here.
    """
    keys, metrics = keys or Keys(), metrics or Metrics()
    batcher = Batcher(
        models.threads,
        limits.batch_size,
        limits.queue_size,
        limits.answer_bytes,
        metrics.batches.observe,
        metrics.queue.set,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(batcher.close)

    app = FastAPIOffline(
        title="resmlp-mt",
        summary=f"Translates with {models.name}",
        version=resmlp_mt.__version__,
        redoc_url=None,
        lifespan=lifespan,
    )

    app.include_router(_build_own(Desk(batcher, limits), models, limits, keys))
    app.include_router(build_router(models, keys, limits))
    app.include_router(_build_status(models, metrics if shows_metrics else None))
    app.mount("/page", _Page(directory=PAGE))
    _explain_refusals(app)
    _guard(app, limits, hosts, origins, tell=[metrics.count, *([log] if log else [])])
    return app


def _build_own(desk: Desk, models: Models, limits: Limits, keys: Keys) -> APIRouter:
    """What translates, for requests of our own and LibreTranslate's."""
    router = APIRouter()
    libretranslate = LibreTranslate(desk, models, limits)

    @router.post(
        "/translate",
        response_class=Response,
        responses={200: {"model": TranslationResponse | LibreResponse}}
        | {status: {"model": Problem, "description": d} for status, d in PROBLEMS.items()},
    )
    async def translate(asked: _either(limits), request: Request):
        """Translate texts, in order."""
        in_body = asked.api_key if isinstance(asked, LibreRequest) else ""
        keys.admit(in_body or find_key(request.headers))
        if isinstance(asked, LibreRequest):
            work = libretranslate.translate(asked)
        else:
            work = _translate(asked, desk, models)
        return await _answer_in_time(request, work, limits.timeout)

    return router


def _build_status(models: Models, metrics: Metrics | None) -> APIRouter:
    """What says how the server does: to programs, and on its page."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server translates."""
        return {"status": "ok", "model": models.name, "version": resmlp_mt.__version__}

    if metrics:

        @router.get("/metrics", response_class=Response)
        async def show_metrics():
            """What Prometheus asks for."""
            return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    @router.get("/", include_in_schema=False)
    async def show_page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=_PAGE_HEADERS)

    return router


def _explain_refusals(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def explain_mistakes(request: Request, error: RequestValidationError):
        if request.url.path == "/detect" or is_libretranslate(error.body):
            return refuse(400, explain_as_libretranslate(error.errors()))
        return refuse(422, explain(error.errors()))

    @app.exception_handler(HTTPException)
    async def explain_refusal(request: Request, error: HTTPException):
        said = str(error.detail)
        if said == _UNREADABLE:
            said = explain_unreadable(error.__cause__)
        return refuse(error.status_code, said, **(error.headers or {}))


def _guard(
    app: FastAPI,
    limits: Limits,
    hosts: frozenset[str],
    origins: Sequence[str],
    tell: list[Callable[[Answered], None]],
) -> None:
    """Put before the application what requests pass; the last one is asked first."""
    app.add_middleware(AnswerHead)
    app.add_middleware(FormsAsJson, size=limits.request_bytes, is_known=is_libretranslate)
    app.add_middleware(LimitBody, size=limits.request_bytes, seconds=limits.timeout)
    app.add_middleware(Apologise)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(CheckHost, names=hosts)
    app.add_middleware(Measure, tell=tell)
    app.add_middleware(MergeSlashes)


def _either(limits: Limits):
    """The body of POST /translate: our own, or LibreTranslate's."""
    own, libre = limit_request(limits), set_limits(LibreRequest, limits)
    return Annotated[
        # Names with blanks are left out where a mistake is explained.
        Annotated[own, Tag("our own")] | Annotated[libre, Tag("of LibreTranslate")],
        Discriminator(lambda asked: "of LibreTranslate" if is_libretranslate(asked) else "our own"),
        Body(),
    ]


async def _translate(asked: TranslationRequest, desk: Desk, models: Models) -> bytes:
    """The answer to a request of our own."""
    texts = [asked.text] if isinstance(asked.text, str) else asked.text
    try:
        model = models.choose(asked.source, asked.target, texts)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    search = SearchOptions(
        beam=asked.beam,
        nbest=asked.nbest,
        lenpen=asked.lenpen,
        max_len_b=asked.max_len_b,
        no_repeat_ngram_size=asked.no_repeat_ngram_size,
    )
    begun = asked.prefix, asked.alternatives
    options = Options(model.translator, search, asked.attention, *begun)

    def write(found: list[Found]) -> bytes:
        return write_results(found, asked.parts)

    return await desk.translate(
        texts,
        options,
        write,
        asked.split_sentences,
        asked.recase,
        glossary=asked.glossary,
        house=model.house if asked.house_terms else None,
    )


async def _answer_in_time(
    request: Request, work: Coroutine[None, None, bytes], seconds: float
) -> Response:
    """What comes of work, unless it takes too long, the client leaves, or the server ends."""
    answer = asyncio.ensure_future(work)
    left = asyncio.ensure_future(request.receive())  # says that the client left
    try:
        await asyncio.wait([answer, left], timeout=seconds, return_when="FIRST_COMPLETED")
        if left.done():
            return Response(status_code=499)  # for the metrics: nobody reads it
        if not answer.done():
            message = f"not translated within {seconds:g} seconds; send less, or later"
            return refuse(503, message, **{"Retry-After": "5"})
        return Response(answer.result(), media_type="application/json")
    except asyncio.CancelledError:  # what is left when the server ends
        return refuse(503, "the server ends; ask again later", **{"Retry-After": "5"})
    finally:
        for task in (left, answer):  # what nobody waits for is not translated
            task.cancel()
