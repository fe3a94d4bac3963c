"""LibreTranslate's interface, for the clients that speak it.

It shares POST /translate with our own: a request that has `q` in the place of `text` is
LibreTranslate's.
"""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from starlette.exceptions import HTTPException

from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.serving import bodies
from resmlp_mt.serving.batcher import Options
from resmlp_mt.serving.bodies import Text, Texts, too_many
from resmlp_mt.serving.desk import Found, Task
from resmlp_mt.serving.html.markup import read_documents, write_documents
from resmlp_mt.serving.models import AUTO, Models, name_language
from resmlp_mt.serving.settings import USUAL_BEAM, Limits

_FIELDS = frozenset("q source target format alternatives api_key".split())


class DetectRequest(BaseModel):
    """Texts in an unknown language. For LibreTranslate, what is empty or null is not there."""

    model_config = ConfigDict(extra="ignore")

    q: Texts = Field(description="A text, or several.", examples=["A dog sleeps."])
    api_key: str = Field("", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, asked: dict) -> dict:
        return {name: value for name, value in asked.items() if value not in (None, "", [])}

    @property
    def texts(self) -> list[str]:
        """One or several."""
        return [self.q] if isinstance(self.q, str) else self.q


class LibreRequest(DetectRequest):
    """Texts to translate, as LibreTranslate's clients ask."""

    source: Text = Field(description='Code of its language, or "auto".', examples=["auto"])
    target: Text = Field(description="Code of the language to translate to.", examples=["de"])
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, AfterValidator(lambda number: max(number, 0))] = Field(
        0, description="Further translations of each text, at most."
    )
    house_terms: bool = Field(
        True, description="Use the terms of the service, if it has some. Our own."
    )


class LibreResponse(BaseModel):
    """An answer of LibreTranslate: of several texts, lists."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: dict | list[dict] | None = None


def is_known(asked: dict) -> bool:
    """Whether the fields of POST /translate are meant for this interface."""
    return "text" not in asked and bool(_FIELDS & asked.keys())


def explain(error: ValidationError) -> str:
    """The fault of a request, in LibreTranslate's words where it has some."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][-1])
    if first["type"] == "missing" and name in _FIELDS:
        return f"Invalid request: missing {name} parameter"
    if name == "format":
        return f"{first['input']!s:.40} format is not supported"
    return f"Invalid request: {bodies.explain(error)}"


def prepare(asked: LibreRequest, models: Models, limits: Limits) -> Task | bytes:
    """The task of a request; or its answer, where the source is in the target's language.

    Raises:
        HTTPException: If there is no such translation.
    """
    texts, count = asked.texts, 1 + asked.alternatives
    if count > limits.beam:
        raise HTTPException(400, f"Invalid request: alternatives is above {limits.beam - 1}")
    source, detected = _find_source(asked.source, texts, models)
    target = models.find_language(asked.target)
    if target is None:
        raise HTTPException(400, f"{asked.target:.40} is not supported")
    rest = {} if detected is None else {"detectedLanguage": detected}
    if rest and isinstance(asked.q, list):
        rest = {"detectedLanguage": [detected] * len(texts)}
    if source == target:  # as LibreTranslate has it
        return _write(asked, [[text] for text in texts], rest)
    if (model := models.find(source, target)) is None:
        raise HTTPException(
            400,
            f"{name_language(target)} ({target}) is not available as a target language from "
            f"{name_language(source)} ({source})",
        )
    plain, html = texts, asked.format == "html"
    if html:
        try:
            plain = read_documents(texts)
        except ValueError as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        if len(plain) > limits.queue_size:
            raise too_many(len(plain), limits.queue_size)

    def describe(found: list[Found]) -> bytes:
        each = [[hypothesis.text for hypothesis in one.hypotheses] for one in found]
        return _write(asked, write_documents(texts, each) if html else each, rest)

    beam = max(min(USUAL_BEAM, limits.beam), count)
    return Task(
        plain,
        Options(model.translator, SearchOptions(beam=beam, nbest=count)),
        describe,
        # Authors of HTML leave out the stops of headings, buttons and menus alone.
        reading={"is_item": html},
        house=model.house if asked.house_terms else None,
        written=sum(map(len, texts)) if html else 0,
    )


def detect(asked: DetectRequest, models: Models) -> list[dict]:
    """Which of the service's languages texts are in, that with most text first.

    Each has a `language`, and a `confidence` among all languages, of 100.
    """
    found = [_describe(*pair) for pair in models.detect(asked.texts)]
    return [one for one in found if one["confidence"] > 0 or one is found[0]]


def build_router(models: Models, limits: Limits, needs_key: bool) -> APIRouter:
    """The rest of LibreTranslate's interface."""
    router = APIRouter()

    @router.get("/languages")
    async def languages() -> list[dict]:
        """The languages of the service, and those that each can be translated to."""
        return [
            {"code": code, "name": name, "targets": sorted({code, *models.targets(code)})}
            for code, name in zip(
                models.languages, map(name_language, models.languages), strict=True
            )
        ]

    @router.post("/translate_file", include_in_schema=False)
    async def refuse_file():
        raise HTTPException(403, "files are not translated here; send their text to /translate")

    @router.post("/suggest", include_in_schema=False)
    async def refuse_suggestion():
        raise HTTPException(403, "Suggestions are disabled on this server.")

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @router.get("/spec", include_in_schema=False)
    async def show_spec(request: Request) -> dict:
        described = request.app.openapi()
        # Clients, such as Dialect, ask for the title.
        return described | {"info": described["info"] | {"title": "LibreTranslate"}}

    @router.get("/frontend/settings")
    async def show_settings() -> dict:
        """Settings of a page. `maxBeam` is our own."""
        first = models.all[0]
        chosen = {"source": first.source, "target": first.target}
        return {
            "apiKeys": needs_key,
            "keyRequired": needs_key,
            "charLimit": -1,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "maxBeam": limits.beam,
            "language": {
                side: {"code": code, "name": name_language(code)} for side, code in chosen.items()
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    return router


def _find_source(asked: str, texts: list[str], models: Models) -> tuple[str, dict | None]:
    """The language of texts; and what is said of it, where it was found out."""
    if asked.lower() == AUTO:
        ranked = models.detect(texts)
        if not ranked:
            raise HTTPException(400, "auto: the languages here cannot be told; name the source")
        return ranked[0][0], _describe(*ranked[0])
    source = models.find_language(asked)
    if source is None:
        raise HTTPException(400, f"{asked:.40} is not supported")
    return source, None


def _describe(code: str, probability: float) -> dict:
    return {"confidence": round(100 * probability, 1), "language": code}


def _write(asked: LibreRequest, translations: list[list[str]], rest: dict) -> bytes:
    """A `LibreResponse` as JSON, of the translations of each text, best first, and the rest."""
    different = [
        list(dict.fromkeys(found)) if text.strip() else [text]
        for text, found in zip(asked.texts, translations, strict=True)
    ]
    best, others = [texts[0] for texts in different], [texts[1:] for texts in different]
    answer = {"translatedText": best, "alternatives": others}
    if isinstance(asked.q, str):
        answer = {name: values[0] for name, values in answer.items()}
    if not asked.alternatives:
        del answer["alternatives"]
    return json.dumps(answer | rest, ensure_ascii=False).encode()
