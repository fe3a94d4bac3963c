"""The HTTP interface: /translate, /detect, /healthz, /metrics, /docs, and the page at /."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware

import resmlp_mt
from resmlp_mt.serving import libretranslate
from resmlp_mt.serving.batcher import Batcher, Desk
from resmlp_mt.serving.bodies import NO_JSON, Asked, read_fields
from resmlp_mt.serving.front import CheckHost, Front, refuse
from resmlp_mt.serving.jobs import is_mistake
from resmlp_mt.serving.keys import Keys, read_keys
from resmlp_mt.serving.libretranslate import DetectRequest, LibreRequest, LibreResponse
from resmlp_mt.serving.metrics import Metrics
from resmlp_mt.serving.models import Models
from resmlp_mt.serving.native import TranslationRequest, TranslationResponse
from resmlp_mt.serving.settings import Limits, Settings

logger = logging.getLogger(__name__)
PAGE = Path(__file__).parent / "page"
# The page needs nothing but what lies beside it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}
_SMALL = 4000  # bytes of a body that is read at once: a larger one is read beside the event loop


class _Page(StaticFiles):
    """The files of the page, with its headers: a browser must not mix those of two versions."""

    def file_response(self, *arguments, **options) -> Response:
        """A file, or that it has not changed."""
        response = super().file_response(*arguments, **options)
        response.headers.update(_PAGE_HEADERS)
        return response


class Problem(BaseModel):
    """A refusal, in words."""

    error: str


def build_app(models: Models, settings: Settings) -> FastAPI:
    """The application, for an ASGI server; UserError if the file of keys is broken."""
    limits, metrics = settings.limits, Metrics()
    known = read_keys(settings.keys, settings.a_minute) if settings.keys else {}
    keys = Keys(known, settings.folder)
    batcher = Batcher(models.threads, limits, metrics.batches.observe, metrics.queue.set)

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
    app.include_router(_build_texts(Desk(batcher, limits), models, limits, keys))
    app.include_router(libretranslate.build_router(models, limits, bool(keys.known)))
    app.include_router(_build_status(models, metrics))
    app.mount("/page", _Page(directory=PAGE))

    @app.exception_handler(HTTPException)
    async def explain_refusal(request: Request, error: HTTPException):
        return refuse(error.status_code, error.detail, **(error.headers or {}))

    # The last one is asked first.
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=limits.request_bytes)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(CheckHost, allowed_hosts=settings.hosts, www_redirect=False)
    app.add_middleware(Front, metrics=metrics, metrics_port=settings.metrics_port)
    return app


def _build_texts(desk: Desk, models: Models, limits: Limits, keys: Keys) -> APIRouter:
    """Routes that read texts, for requests of our own and LibreTranslate's."""
    router = APIRouter()

    def read(body: bytes, request: Request, given: str) -> Asked:
        """The request that a body is; a key was given in its head, or is in it."""
        content_type = request.headers.get("Content-Type", "")
        fields = read_fields(body, content_type, request.query_params)
        kind = TranslationRequest
        if request.url.path == "/detect":
            kind = DetectRequest
        elif libretranslate.is_known(fields):
            kind = LibreRequest
        elif "json" not in content_type.lower():
            raise HTTPException(400, NO_JSON)
        if not given:
            keys.admit(str(fields.get("api_key") or ""))
        return kind.read(fields, limits)

    async def receive(request: Request) -> Asked:
        if given := _find_key(request):
            keys.admit(given)
        body = await request.body()
        if keys.known and not given and b"api_key" not in body:
            keys.admit("")
        if len(body) <= _SMALL:
            return read(body, request, given)
        return await desk.read(len(body), read, body, request, given)

    @router.post(
        "/translate",
        response_class=Response,
        responses={200: {"model": TranslationResponse | LibreResponse}}
        | dict.fromkeys((400, 403, 413, 422, 429, 500, 503), {"model": Problem}),
        openapi_extra=_describe_body(TranslationRequest, LibreRequest),
    )
    async def translate(request: Request):
        """Translate texts, in order."""
        asked = await receive(request)
        work = desk.translate(asked.weight, lambda: asked.prepare(models, limits))
        return await _answer_in_time(request, work, limits.timeout, asked.status)

    @router.post("/detect", openapi_extra=_describe_body(DetectRequest))
    async def detect(request: Request) -> list[dict]:
        """Which of the service's languages texts are in, with a confidence of 100."""
        asked = await receive(request)
        return await desk.read(len(asked.texts), libretranslate.detect, asked, models)

    return router


def _build_status(models: Models, metrics: Metrics) -> APIRouter:
    """Routes for the state of the server, and its page."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server translates."""
        return {"status": "ok", "model": models.name, "version": resmlp_mt.__version__}

    @router.get("/metrics", response_class=Response)
    async def show_metrics():
        """The figures, for Prometheus."""
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    @router.get("/", include_in_schema=False)
    async def show_page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=_PAGE_HEADERS)

    return router


def _find_key(request: Request) -> str:
    """The key in the head of a request; empty if there is none."""
    kind, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else request.query_params.get("api_key", "")


def _describe_body(*kinds: type[BaseModel]) -> dict:
    """Bodies of requests, for the documents: FastAPI would read them on the event loop."""
    schema = {"anyOf": [kind.model_json_schema() for kind in kinds]}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _answer_in_time(
    request: Request, work: Coroutine[None, None, bytes], seconds: float, status: int
) -> Response:
    """The answer of work, unless it takes too long, the client leaves, or the server ends.

    `status` is that of a mistake of the client.
    """
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
    except HTTPException:
        raise
    except Exception as error:
        if is_mistake(error):
            return refuse(status, str(error))
        # Starlette's own answer to it would not be counted, nor read by other pages.
        logger.exception("a request failed")
        return refuse(500, "this failed, and not by your fault; the server's log says more")
    finally:
        for task in (left, answer):  # what nobody waits for is not translated
            task.cancel()
