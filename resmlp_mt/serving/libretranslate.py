"""LibreTranslate's interface, for the clients that speak it.

It shares POST /translate with our own: a request that has `q` in the place of `text` is
LibreTranslate's.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException

from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import UserError
from resmlp_mt.serving.bodies import Asked, Text
from resmlp_mt.serving.html.markup import read_documents, write_documents
from resmlp_mt.serving.jobs import Found, Job, weigh
from resmlp_mt.serving.models import AUTO, Models, name_language
from resmlp_mt.serving.settings import USUAL_BEAM, Limits

_FIELDS = frozenset("q source target format alternatives api_key".split())
_MARKUP = 5  # how many times as much as its characters HTML weighs


class DetectRequest(Asked):
    """Texts in an unknown language. For LibreTranslate, what is empty or null is not there."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)
    status: ClassVar[int] = 400

    text: list[Text] | Text = Field(alias="q", examples=["A dog sleeps."])
    """A text, or several."""
    api_key: str = Field("", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, asked: dict) -> dict:
        return {name: value for name, value in asked.items() if value not in (None, "", [])}

    @classmethod
    def explain(cls, error: Mapping[str, Any]) -> str:
        """A mistake, in LibreTranslate's words where it has some."""
        if error["type"] == "missing":
            return f"Invalid request: missing {error['loc'][-1]} parameter"
        if error["loc"] == ("format",):
            return f"{error['input']!s:.40} format is not supported"
        return f"Invalid request: {super().explain(error)}"


class LibreRequest(DetectRequest):
    """Texts to translate, as LibreTranslate's clients ask."""

    source: Text = Field(examples=["auto"])
    """Code of its language, or "auto"."""
    target: Text = Field(examples=["de"])
    """Code of the language to translate to."""
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, AfterValidator(lambda number: max(number, 0))] = 0
    """Further translations of each text, at most."""

    @property
    def weight(self) -> int:
        """About how long it takes to read."""
        return weigh(self.texts) * (_MARKUP if self.format == "html" else 1)

    def prepare(self, models: Models, limits: Limits) -> Job:
        """The job of it; UserError if there is no such translation."""
        texts, count, html = self.texts, 1 + self.alternatives, self.format == "html"
        if count > limits.beam:
            raise UserError(f"Invalid request: alternatives is above {limits.beam - 1}")
        detected = None
        if self.source.lower() != AUTO:
            source = _find_language(self.source, models)
        elif found := models.detect(texts):
            source, detected = found[0][0], _describe(*found[0])
        else:
            raise UserError("auto: the languages here cannot be told; name the source")
        target = _find_language(self.target, models)
        if source == target:  # as LibreTranslate has it
            return Job([], None, describe=lambda _: self._write([[t] for t in texts], detected))
        if (translator := models.pairs.get((source, target))) is None:
            asked = f"{name_language(target)} ({target}) is not available as a target language"
            raise UserError(f"{asked} from {name_language(source)} ({source})")

        def write(found: list[Found]) -> bytes:
            each = [[hypothesis.text for hypothesis in one.hypotheses] for one in found]
            return self._write(write_documents(texts, each) if html else each, detected)

        beam = max(min(USUAL_BEAM, limits.beam), count)
        return Job(
            read_documents(texts) if html else texts,
            translator,
            SearchOptions(beam=beam, nbest=count),
            describe=write,
            # Authors of HTML leave out the stops of headings, buttons and menus alone.
            reading={"is_item": html},
            written=sum(map(len, texts)) if html else 0,
        )

    def _write(self, translations: list[list[str]], detected: dict | None) -> bytes:
        """A `LibreResponse` as JSON, of the translations of each text, best first."""
        different = [
            list(dict.fromkeys(found)) if text.strip() else [text]
            for text, found in zip(self.texts, translations, strict=True)
        ]
        answer = {"translatedText": [best for best, *_ in different]}
        if self.alternatives:
            answer["alternatives"] = [others for _, *others in different]
        if detected:
            answer["detectedLanguage"] = [detected] * len(different)
        if isinstance(self.text, str):
            answer = {name: value for name, (value,) in answer.items()}
        return LibreResponse(**answer).model_dump_json(exclude_unset=True).encode()


class LibreResponse(BaseModel):
    """An answer of LibreTranslate: of several texts, lists."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: dict | list[dict] | None = None


def is_known(asked: dict) -> bool:
    """Whether the fields of POST /translate are meant for this interface."""
    return "text" not in asked and bool(_FIELDS & asked.keys())


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
            {
                "code": code,
                "name": name_language(code),
                "targets": sorted({code} | {to for source, to in models.pairs if source == code}),
            }
            for code in models.languages
        ]

    @router.post("/translate_file", include_in_schema=False)
    @router.post("/suggest", include_in_schema=False)
    async def refuse():
        raise HTTPException(403, "no files and suggestions here; send texts to /translate")

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
        chosen = zip(("source", "target"), next(iter(models.pairs)), strict=True)
        return {
            "apiKeys": needs_key,
            "keyRequired": needs_key,
            "charLimit": -1,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "maxBeam": limits.beam,
            "language": {
                side: {"code": code, "name": name_language(code)} for side, code in chosen
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    return router


def _find_language(asked: str, models: Models) -> str:
    """The language of the service that is asked for."""
    if (found := models.find_language(asked)) is None:
        raise UserError(f"{asked:.40} is not supported")
    return found


def _describe(code: str, probability: float) -> dict:
    return {"confidence": round(100 * probability, 1), "language": code}
