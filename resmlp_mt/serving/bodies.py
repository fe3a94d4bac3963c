"""Bodies of requests: read, and checked before anything is done with them."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import parse_qs

from pydantic import BaseModel, BeforeValidator, ValidationError
from python_multipart import parse_form
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from resmlp_mt.serving.jobs import too_many
from resmlp_mt.serving.settings import Limits
from resmlp_mt.text.surrogates import mend_surrogates

NO_JSON = "send JSON as in /docs, in UTF-8, with the header Content-Type: application/json"
_NAME = 40  # characters of a name in an answer
_MOST_TERMS, _MOST_FIELDS = 1000, 50
# Commas and brackets of a body, those of its texts counted. To parse more holds all threads.
_MOST_VALUES = 100_000

MEND = BeforeValidator(lambda text: mend_surrogates(text) if isinstance(text, str) else text)
Text = Annotated[str, MEND]


class Asked(BaseModel):
    """A request: ours, or one of LibreTranslate's."""

    status: ClassVar[int] = 422  # of the answer to one that is wrong
    text: list[Text] | Text

    @property
    def texts(self) -> list[str]:
        """One or several."""
        return [self.text] if isinstance(self.text, str) else self.text

    @classmethod
    def read(cls, fields: dict, limits: Limits) -> Self:
        """The request that fields are; HTTPException if it is too large, or none."""
        # pydantic would explain each of a hundred thousand mistakes.
        most = {"text": limits.queue_size, "q": limits.queue_size, "glossary": _MOST_TERMS}
        for name in most.keys() & fields.keys():
            if isinstance(many := fields[name], list | dict) and len(many) > most[name]:
                what = "terms" if name == "glossary" else "sentences"
                raise too_many(len(many), most[name], what)
        try:
            return cls.model_validate(fields, context=limits)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise HTTPException(cls.status, cls.explain(first)) from None

    @classmethod
    def explain(cls, error: Mapping[str, Any]) -> str:
        """A mistake that pydantic found: where it is, and what."""
        # Of a union the location holds the types too, as list[str].
        parts = [part[:_NAME] for part in map(str, error["loc"]) if "[" not in part]
        return ".".join(parts) + ": " * bool(parts) + error["msg"].removeprefix("Value error, ")


def read_fields(body: bytes, kind: str, query: QueryParams) -> dict:
    """The fields of a request: JSON; or a form and a query, as the JSON that says the same.

    `kind` is the Content-Type. HTTPException if it cannot be read.
    """
    try:
        if "json" not in kind.lower():
            found = {name: query.getlist(name) for name in query}
            found |= _read_form(body, kind) if "form" in kind.lower() else {}
            return {
                name: texts if name == "q" and len(texts) > 1 else texts[-1]
                for name, texts in found.items()
            }
        if (values := sum(map(body.count, (b",", b"[", b"{")))) > _MOST_VALUES:
            raise too_many(values, _MOST_VALUES, "values, or commas and brackets")
        found = json.loads(body.decode())
        if isinstance(found, dict):
            return _check_number(found)
    except (ValueError, RecursionError) as error:  # they say where
        raise HTTPException(400, f"the body cannot be read: {error}; {NO_JSON}") from None
    raise HTTPException(400, NO_JSON)


def _read_form(body: bytes, kind: str) -> dict[str, list[str]]:
    """The texts of each field of a form; ValueError if it is none, or has files."""
    if "multipart" not in kind.lower():
        return parse_qs(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    fields: dict[str, list[str]] = {}

    def add(field) -> None:
        fields.setdefault(field.field_name.decode(), []).append((field.value or b"").decode())
        _check_number(fields)

    def refuse(file) -> None:
        raise ValueError("files are not taken")

    parse_form({"Content-Type": kind.encode("latin-1")}, BytesIO(body), add, refuse)
    return fields


def _check_number(fields: dict) -> dict:
    if len(fields) > _MOST_FIELDS:
        raise ValueError(f"more than {_MOST_FIELDS} fields")
    return fields
