"""The HTTP interface: POST /translate, /healthz, /metrics, /docs, and the page at /."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

import resmlp_mt
from resmlp_mt.inference.hypotheses import Hypothesis, join
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.segments import Segment
from resmlp_mt.inference.translator import Translator
from resmlp_mt.serving.batcher import AnswerTooLarge, Batcher, Options, QueueFull
from resmlp_mt.serving.limits import LOOPBACK, CheckHost, LimitBody, Limits, refuse
from resmlp_mt.serving.metrics import Measure, Metrics
from resmlp_mt.serving.request import TranslationRequest, explain, limit_request, too_many

PAGE = Path(__file__).parent / "page"
# Characters of a request that take noticeably long to split, and how many such requests may wait.
_LONG, _LONG_WAITING = 20_000, 16
# Most lines of a request, for each text that the queue holds. Blank lines are not queued, but take
# time to split.
_BLANK = 10
# The page needs nothing but what lies beside it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


class AttentionMap(BaseModel):
    """Subwords with the end of the sentence, and a row of weights for each of the target."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]


class Translation(BaseModel):
    """A translation; its score is the mean log-probability (base e) of its subwords."""

    text: str
    score: float
    attention: list[AttentionMap] | None = Field(None, description="One for each part of a text.")


class Result(BaseModel):
    """The translations of a text, best first."""

    source: str
    unknown: float = Field(description="Share of its characters that the model never saw.")
    translations: list[Translation]


class TranslationResponse(BaseModel):
    """A result for each text, in order."""

    results: list[Result]


class Problem(BaseModel):
    """What is wrong."""

    error: str


PROBLEMS = {
    400: "The request is not text, or not for this host.",
    408: "The request did not arrive in time.",
    413: "The request or its answer is too large.",
    422: "The request is not as described here.",
    429: "Too many texts wait; try again after Retry-After seconds.",
    500: "The server failed.",
    503: "Not translated in time; try again after Retry-After seconds.",
}


def build_app(
    translator: Translator,
    name: str,
    limits: Limits,
    hosts: frozenset[str] = LOOPBACK,
) -> FastAPI:
    """The application, to be run by an ASGI server.

    Args:
        translator: What translates.
        name: What the model is called in answers.
        limits: What requests may ask.
        hosts: Names that requests may call the server by.
    """
    metrics = Metrics()
    batcher = Batcher(
        translator,
        limits.batch_size,
        limits.queue_size,
        limits.answer_bytes,
        metrics.batches.observe,
    )
    metrics.queue.set_function(lambda: batcher.waiting)
    desk = Desk(translator, batcher, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(batcher.close)

    app = FastAPIOffline(
        title="resmlp-mt",
        summary=f"Translates with {name}",
        version=resmlp_mt.__version__,
        redoc_url=None,
        lifespan=lifespan,
    )

    @app.post(
        "/translate",
        response_class=Response,
        responses={200: {"model": TranslationResponse}}
        | {status: {"model": Problem, "description": d} for status, d in PROBLEMS.items()},
    )
    async def translate(asked: limit_request(limits), request: Request):
        """Translate texts, in order."""
        answer = asyncio.ensure_future(desk.answer(asked))
        left = asyncio.ensure_future(request.receive())  # says that the client left
        try:
            await asyncio.wait(
                [answer, left], timeout=limits.timeout, return_when="FIRST_COMPLETED"
            )
            if left.done():
                return Response(status_code=499)  # for the metrics: nobody reads it
            if not answer.done():
                message = f"not translated within {limits.timeout:g} seconds; send less, or later"
                return refuse(503, message, **{"Retry-After": "5"})
            return answer.result()
        except asyncio.CancelledError:  # what is left when the server ends
            return refuse(503, "the server ends; ask again later", **{"Retry-After": "5"})
        finally:
            for task in (left, answer):  # what nobody waits for is not translated
                task.cancel()

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server translates."""
        return {"status": "ok", "model": name, "version": resmlp_mt.__version__}

    @app.head("/metrics", include_in_schema=False)
    @app.get("/metrics", response_class=Response)
    async def show_metrics():
        """What Prometheus asks for."""
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(RequestValidationError)
    async def explain_mistakes(request: Request, error: RequestValidationError):
        return refuse(422, explain(error.errors()))

    @app.exception_handler(HTTPException)
    async def explain_refusal(request: Request, error: HTTPException):
        return refuse(error.status_code, str(error.detail), **(error.headers or {}))

    @app.exception_handler(Exception)
    async def apologise(request: Request, error: Exception):
        return refuse(500, "this failed, and not by your fault; the server's log says more")

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def show_page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=_PAGE_HEADERS)

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(LimitBody, size=limits.request_bytes, seconds=limits.timeout)
    app.add_middleware(CheckHost, names=hosts)
    paths = frozenset({"/", "/translate", "/healthz", "/metrics"})
    app.add_middleware(Measure, metrics=metrics, paths=paths)
    return app


class Desk:
    """Splits a request into texts, queues them, and joins their translations to an answer.

    Args:
        translator: What translates.
        batcher: Where texts wait.
        limits: What requests may ask.
    """

    def __init__(self, translator: Translator, batcher: Batcher, limits: Limits):
        self.translator, self.batcher, self.limits = translator, batcher, limits
        # Both run beside the event loop, so that other requests need not wait. A megabyte takes
        # seconds to split. Such requests wait for one another.
        self.quick, self.slow = ThreadPoolExecutor(4), ThreadPoolExecutor(1)
        self.long_waiting = 0

    async def answer(self, asked: TranslationRequest) -> Response:
        """The answer to a request. To cancel it ends the work for it."""
        texts = [asked.text] if isinstance(asked.text, str) else asked.text
        search = SearchOptions(beam=asked.beam, nbest=asked.nbest, lenpen=asked.lenpen)
        try:
            split = await self._split(texts, asked.split_sentences)
            segments = [segment for parts in split for segment in parts]
            job = self.batcher.submit(segments, Options(search, asked.attention))
            found = await asyncio.wrap_future(job.answer)
        except QueueFull:
            return refuse(429, "too many texts wait; try again", **{"Retry-After": "1"})
        except AnswerTooLarge:
            message = f"the answer is larger than {self.limits.answer_bytes:,} bytes; ask for less"
            return refuse(413, message)
        body = await _run(self.quick, self._render, texts, split, found)
        return Response(body, media_type="application/json")

    async def _split(self, texts: list[str], split_sentences: bool | None) -> list[list[Segment]]:
        if sum(map(len, texts)) <= _LONG:
            return await _run(self.quick, self._split_now, texts, split_sentences)
        if self.long_waiting == _LONG_WAITING:
            raise QueueFull
        self.long_waiting += 1
        try:
            return await _run(self.slow, self._split_now, texts, split_sentences)
        finally:
            self.long_waiting -= 1

    def _split_now(self, texts: list[str], split_sentences: bool | None) -> list[list[Segment]]:
        count = sum(text.count("\n") for text in texts)
        if count > _BLANK * self.limits.queue_size:
            raise too_many(count, self.limits)
        split, count = [], 0
        for text in texts:
            split.append(self.translator.split(text, split_sentences))
            count += max(1, len(split[-1]))
            if count > self.limits.queue_size:
                raise too_many(count, self.limits)
        return split

    def _render(
        self, texts: list[str], split: list[list[Segment]], found: list[list[Hypothesis]]
    ) -> bytes:
        """A `TranslationResponse` as JSON."""
        codec, rest, results = self.translator.codec, iter(found), []
        for text, parts in zip(texts, split, strict=True):
            hypotheses = join(list(islice(rest, len(parts))), parts, codec.target_language)
            unknown = codec.share_unknown(piece for part in parts for piece in part.pieces)
            result = _describe(text, unknown, hypotheses)
            # One at a time, so that other threads get their turns.
            results.append(json.dumps(result, ensure_ascii=False))
        return ('{"results":[' + ",".join(results) + "]}").encode()


def _run(pool: ThreadPoolExecutor, function: Callable, *arguments) -> asyncio.Future:
    return asyncio.get_running_loop().run_in_executor(pool, function, *arguments)


def _describe(text: str, unknown: float, hypotheses: list[Hypothesis]) -> dict:
    """A `Result`."""
    translations = []
    for hypothesis in hypotheses:
        translations.append({"text": hypothesis.text, "score": round(hypothesis.score, 4)})
        if hypothesis.attention:
            translations[-1]["attention"] = [
                {"source": a.source, "target": a.target, "weights": _round(a.weights)}
                for a in hypothesis.attention
            ]
    return {"source": text, "unknown": round(unknown, 4), "translations": translations}


def _round(weights: np.ndarray) -> list[list[float]]:
    return weights.astype(float).round(4).tolist()
