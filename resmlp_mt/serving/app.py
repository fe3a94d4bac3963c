"""The HTTP interface: POST /translate, /healthz, /metrics, /docs, and the page at /."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException

import resmlp_mt
from resmlp_mt.data.text import mend_surrogates
from resmlp_mt.inference.translator import Hypothesis, Translator, join
from resmlp_mt.serving.batcher import Batcher, Options, QueueFull
from resmlp_mt.serving.limits import LimitBody, refuse
from resmlp_mt.serving.metrics import Measure, Metrics

PAGE = Path(__file__).parent / "page"
WIDEST_BEAM = 32
# The page needs nothing but what lies beside it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Limits:
    """What the server takes: texts together, texts that wait, bytes of a request, seconds.

    A text too long for the model counts in parts.
    """

    batch_size: int = 64
    queue_size: int = 2000
    request_bytes: int = 1_000_000
    timeout: float = 60.0


def _mend(text: object) -> object:
    return mend_surrogates(text) if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_mend)]


class TranslationRequest(BaseModel):
    """What to translate, and how."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Text | list[Text] = Field(
        description="A text, or several, of one or more sentences and lines; white space between "
        "them stays as it is.",
        examples=["A man rides a bike.", ["A man rides a bike.", "Two dogs play."]],
    )
    beam: int = Field(5, ge=1, le=WIDEST_BEAM, description="Hypotheses kept in the search.")
    nbest: int = Field(1, ge=1, description="Translations of each text, at most `beam`.")
    lenpen: float = Field(
        1.0, ge=0, le=10, allow_inf_nan=False, description="Above 1 favours long translations."
    )
    split_sentences: bool | None = Field(
        None,
        description="Translate each sentence by itself; false leaves lines whole where they are "
        "not too long. Default: as the model was trained.",
    )
    attention: bool = Field(False, description="Return where each translation was made from.")

    @model_validator(mode="after")
    def _fit_into_the_beam(self):
        if self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} is more than beam {self.beam}")
        return self


class AttentionMap(BaseModel):
    """Subwords with the end of the sentence, and for each of the target's a row of weights."""

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
    translations: list[Translation]


class TranslationResponse(BaseModel):
    """A result for each text, in order."""

    results: list[Result]


class Problem(BaseModel):
    """What is wrong."""

    error: str


PROBLEMS = {
    400: "The request is not text.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    422: "The request is not as described here.",
    429: "Too many texts wait; try again after Retry-After seconds.",
    500: "The server failed.",
    503: "Not translated in time; try again after Retry-After seconds.",
}


def build_app(translator: Translator, workers: int, name: str, limits: Limits) -> FastAPI:
    """The application, to be run by an ASGI server.

    Args:
        translator: What translates.
        workers: Batches that it translates side by side.
        name: What the model is called in answers.
        limits: What requests may ask.
    """
    metrics = Metrics()
    batcher = Batcher(
        translator, workers, limits.batch_size, limits.queue_size, metrics.batches.observe
    )
    metrics.queue.set_function(lambda: len(batcher.waiting))

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
        response_model=TranslationResponse,
        response_model_exclude_none=True,
        responses={status: {"model": Problem, "description": d} for status, d in PROBLEMS.items()},
    )
    async def translate(asked: TranslationRequest, request: Request):
        """Translate texts, in order."""
        texts = [asked.text] if isinstance(asked.text, str) else asked.text
        # Not here, where the other requests would wait for it.
        split = await asyncio.to_thread(
            lambda: [translator.split(text, asked.split_sentences) for text in texts]
        )
        parts = [part.strip() for parts in split for part in parts]
        if len(parts) > limits.queue_size:
            return refuse(413, f"{len(parts):,} sentences; send {limits.queue_size:,} at most")
        options = Options(asked.beam, asked.nbest, asked.lenpen, asked.attention)
        try:
            futures = batcher.submit(parts, options)
        except QueueFull:
            return refuse(429, "too many texts wait; try again", **{"Retry-After": "1"})
        answers = asyncio.ensure_future(_collect(futures))
        left = asyncio.ensure_future(request.receive())  # what comes now is that the client left
        try:
            await asyncio.wait(
                [answers, left], timeout=limits.timeout, return_when="FIRST_COMPLETED"
            )
            if left.done():
                return Response(status_code=499)  # for the metrics: nobody reads it
            if not answers.done():
                message = f"not translated within {limits.timeout:g} seconds; send less, or later"
                return refuse(503, message, **{"Retry-After": "5"})
            found = iter(answers.result())
            target = translator.codec.target_language
            joined = [join(list(islice(found, len(parts))), parts, target) for parts in split]
            return {"results": list(map(_describe, texts, joined))}
        finally:
            for task in (left, answers, *futures):  # what nobody waits for is not translated
                task.cancel()

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server translates."""
        return {"status": "ok", "model": name, "version": resmlp_mt.__version__}

    @app.get("/metrics", response_class=Response)
    async def show_metrics():
        """What Prometheus asks for."""
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError):
        return refuse(422, "; ".join(map(_explain, error.errors())))

    @app.exception_handler(HTTPException)
    async def explain_refusal(request: Request, error: HTTPException):
        return refuse(error.status_code, str(error.detail), **(error.headers or {}))

    @app.exception_handler(Exception)
    async def apologise(request: Request, error: Exception):
        return refuse(500, "this failed, and not by your fault; the server's log says more")

    @app.get("/", include_in_schema=False)
    async def show_page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=_PAGE_HEADERS)

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(LimitBody, size=limits.request_bytes, seconds=limits.timeout)
    paths = frozenset({"/", "/translate", "/healthz", "/metrics"})
    app.add_middleware(Measure, metrics=metrics, paths=paths)
    return app


async def _collect(futures: list[Future]) -> list[list[Hypothesis]]:
    return [await asyncio.wrap_future(future) for future in futures]


def _describe(text: str, hypotheses: list[Hypothesis]) -> dict:
    """A `Result`."""
    translations = []
    for hypothesis in hypotheses:
        translations.append({"text": hypothesis.text, "score": round(hypothesis.score, 4)})
        if hypothesis.attention:
            translations[-1]["attention"] = [
                {"source": a.source, "target": a.target, "weights": _round(a.weights)}
                for a in hypothesis.attention
            ]
    return {"source": text, "translations": translations}


def _round(weights: np.ndarray) -> list[list[float]]:
    return weights.astype(float).round(4).tolist()


def _explain(error: dict) -> str:
    """One mistake in a request: where it is, and what."""
    if error["loc"] == ("body",) and error["type"] != "value_error":
        return "send JSON as in /docs, with the header Content-Type: application/json"
    # Of a union the location holds the types too.
    parts = [str(part) for part in error["loc"][1:] if str(part).isalnum()]
    return ".".join(parts) + ": " * bool(parts) + error["msg"].removeprefix("Value error, ")
