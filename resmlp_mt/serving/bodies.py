"""Bodies of requests: read, and checked before anything is done with them."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Annotated, TypeVar
from urllib.parse import parse_qs

from pydantic import BaseModel, BeforeValidator, Discriminator, Tag, ValidationError
from python_multipart import parse_form
from python_multipart.exceptions import FormParserError
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from resmlp_mt.serving.settings import Limits
from resmlp_mt.text.surrogates import mend_surrogates

NO_JSON = "send JSON as in /docs, with the header Content-Type: application/json"
MOST_TERMS = 1000
_MOST_FIELDS = 20  # of a form
# Commas and brackets of a body, those of its texts counted. To parse more holds all threads.
_MOST_VALUES = 100_000
# Mistakes that an answer names, and characters of a name. It counts the others.
_NAMED, _WORD = 3, 40

Request = TypeVar("Request", bound=BaseModel)


def _mend(text: object) -> object:
    return mend_surrogates(text) if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_mend)]
# Chosen by type: else a mistake in a list would be explained as one in a string too.
Texts = Annotated[
    Annotated[Text, Tag("a text")] | Annotated[list[Text], Tag("several texts")],
    Discriminator(lambda texts: "several texts" if isinstance(texts, list) else "a text"),
]


def read_fields(body: bytes, kind: str, query: QueryParams) -> dict:
    """The fields of a request: JSON; or a form and a query, as the JSON that says the same.

    Args:
        body: Of the request.
        kind: Its Content-Type. JSON has all fields of its request.
        query: It has fields beside a form, or where there is no body.

    Raises:
        HTTPException: If it cannot be read.
    """
    try:
        if "json" in kind.lower():
            if (values := sum(map(body.count, (b",", b"[", b"{")))) > _MOST_VALUES:
                raise too_many(values, _MOST_VALUES, "values, or commas and brackets")
            if isinstance(found := json.loads(body.decode()), dict):
                return found
            raise HTTPException(400, NO_JSON)
        found = {name: query.getlist(name) for name in query}
        found |= _read_form(body, kind) if "form" in kind.lower() else {}
        return {
            name: texts if name == "q" and len(texts) > 1 else texts[-1]
            for name, texts in found.items()
        }
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1:,} is 0x{error.object[error.start]:02x}"
        said = f"the body is not UTF-8 ({byte}); encode it so, and do not compress it"
    except RecursionError:
        said = "the body is nested too deeply; send JSON as in /docs"
    except json.JSONDecodeError as error:
        said = f"the body is no JSON: {error.msg} at character {error.pos + 1:,}"
    except ValueError as error:  # python_multipart's are some, too
        said = f"the body cannot be read: {error}"
    raise HTTPException(400, said)


def _read_form(body: bytes, kind: str) -> dict[str, list[str]]:
    """The texts of each field of a form; ValueError if it is none, or has files."""
    if "multipart" not in kind.lower():
        return parse_qs(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    fields: dict[str, list[str]] = {}

    def add(field) -> None:
        if len(fields) == _MOST_FIELDS:
            raise FormParserError("too many fields")
        fields.setdefault(field.field_name.decode(), []).append((field.value or b"").decode())

    def refuse(file) -> None:
        raise FormParserError("files are not taken")

    parse_form({"Content-Type": kind.encode("latin-1")}, BytesIO(body), add, refuse)
    return fields


def check(kind: type[Request], fields: dict, limits: Limits) -> Request:
    """The request that fields are.

    Raises:
        HTTPException: If it holds more than the queue does, or what no request has.
        ValidationError: If something else is wrong with it.
    """
    # pydantic would explain each of a hundred thousand mistakes.
    most = {"text": limits.queue_size, "q": limits.queue_size, "glossary": MOST_TERMS}
    for name in most.keys() & fields.keys():
        if isinstance(many := fields[name], list | dict) and len(many) > most[name]:
            raise too_many(len(many), most[name], "terms" if name == "glossary" else "sentences")
    strange = [name for name in fields if name not in kind.model_fields]
    if strange and kind.model_config.get("extra") == "forbid":
        named = ", ".join(name[:_WORD] for name in strange[:_NAMED])
        raise HTTPException(422, f"{named}{_count_rest(strange)}: unknown; see /docs")
    return kind.model_validate(fields, context=limits)


def too_many(found: int, most: int, what: str = "sentences") -> HTTPException:
    """The answer to a request with more than the queue holds."""
    return HTTPException(413, f"{found:,} {what}; send {most:,} at most")


def explain(error: ValidationError) -> str:
    """The first mistakes in a request, and how many more there are."""
    errors = error.errors(include_url=False, include_context=False)
    return "; ".join(map(_explain, errors[:_NAMED])) + _count_rest(errors)


def _explain(error: dict) -> str:
    """One mistake in a request: where it is, and what."""
    # Of a union the location holds the types too, which have blanks.
    parts = [part for part in map(str, error["loc"]) if part.replace("_", "").isalnum()]
    return ".".join(parts) + ": " * bool(parts) + error["msg"].removeprefix("Value error, ")


def _count_rest(found: Sequence) -> str:
    return f" and {len(found) - _NAMED:,} more" * (len(found) > _NAMED)
