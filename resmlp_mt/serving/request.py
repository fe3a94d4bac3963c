"""What a request may ask: checked before anything is done with it, and refused in few words."""

from collections.abc import Sequence
from reprlib import repr as shorten
from typing import Annotated, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException

from resmlp_mt.serving.limits import Limits
from resmlp_mt.serving.models import AUTO
from resmlp_mt.text.surrogates import mend_surrogates

USUAL_BEAM = 5
# Mistakes that an answer names. It counts the others.
_NAMED = 3
# Most terms of a glossary, characters on each side of one, and characters of the texts in which
# they are looked for: the worst take seconds.
_TERMS, _SIDE, SEARCHED = 1000, 100, 100_000
# Most subwords that the terms of a sentence make its translation hold, times the beam. A search
# that holds them takes longer by as much.
HELD = 120
# Characters of a key or a mistake that are shown.
_WORD, _MISTAKE = 40, 200


def _mend(text: object) -> object:
    return mend_surrogates(text) if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_mend)]
# Chosen by type: else a mistake in a list would be explained as one in a string too.
Texts = Annotated[
    Annotated[Text, Tag("a text")] | Annotated[list[Text], Tag("several texts")],
    Discriminator(lambda texts: "several texts" if isinstance(texts, list) else "a text"),
]


def _check_terms(terms: object) -> object:
    """Name the term that is wrong; pydantic says where, and terms may have blanks."""
    for term, said in terms.items() if isinstance(terms, dict) else ():
        if not isinstance(said, str):
            raise ValueError(f"{shorten(term)} -> {shorten(said)}: a side is no text")
        if max(len(term), len(said)) > _SIDE:
            raise ValueError(
                f"{shorten(term)} -> {shorten(said)}: a side has more than {_SIDE} characters"
            )
    return terms


class TranslationRequest(BaseModel):
    """What to translate, and how."""

    model_config = ConfigDict(extra="forbid", strict=True)
    limits: ClassVar[Limits] = Limits()

    text: Texts = Field(
        description="A text, or several, of one or more sentences and lines; white space between "
        "them stays as it is.",
        examples=["A man rides a bike.", ["A man rides a bike.", "Two dogs play."]],
    )
    source: Text = Field(
        AUTO, description='Code of its language; "auto" finds it out where that matters.'
    )
    target: Text | None = Field(
        None, description="Code of the language to translate to, where there are several."
    )
    beam: int = Field(USUAL_BEAM, ge=1, description="Hypotheses kept in the search.")
    nbest: int = Field(1, ge=1, description="Translations of each text, at most `beam`.")
    lenpen: float = Field(
        1.0, ge=0, le=10, allow_inf_nan=False, description="Above 1 favours long translations."
    )
    split_sentences: bool | None = Field(
        None,
        description="Translate each sentence by itself; false leaves lines whole where they are "
        "not too long. Default: as the model was trained.",
    )
    recase: bool = Field(
        True,
        description="Read what is in capitals in lower case, and translate it to capitals. Read "
        "emphasis, links and tags within a sentence as plain words, and put them around those of "
        "the translation. Keep words that the model cannot read. Where there is a prefix, the text "
        "is taken as typed.",
    )
    prefix: Text = Field(
        "", description="What the translation of the text begins with. Its last word may go on."
    )
    alternatives: bool = Field(
        False,
        description="Return translations that go on in different ways behind `prefix`. If that "
        "ends in a blank, its last word is whole.",
    )
    glossary: Annotated[dict[Text, Text], BeforeValidator(_check_terms)] = Field(
        {},
        max_length=_TERMS,
        description=f"What translations shall hold for terms of the texts: at most {_TERMS:,}, of "
        f"{_SIDE} characters on each side. The texts have at most {SEARCHED:,} characters then, "
        f"and the translations of a sentence's terms {HELD} subwords, divided by `beam`. Goes "
        "without `prefix` and `alternatives`.",
        examples=[{"bike": "Drahtesel"}],
    )
    house_terms: bool = Field(
        True,
        description="Use the terms of the service too, if it has some; an entry of `glossary` for "
        "the same term counts more. A sentence where they cannot be held goes without, and so does "
        "a request with `prefix` or `alternatives`.",
    )
    max_len_b: int = Field(
        200, ge=1, le=1000, description="Subwords of the translation of a part, at most."
    )
    no_repeat_ngram_size: int = Field(
        0,
        ge=0,
        le=100,
        description="No sequence of so many subwords comes twice in a part; 0, or 2 or more.",
    )
    parts: bool = Field(False, description="Return what was translated at once, too.")
    attention: bool = Field(False, description="Return where each translation was made from.")

    @model_validator(mode="before")
    @classmethod
    def _cost_little(cls, asked: object) -> object:
        # pydantic would explain each of a hundred thousand mistakes.
        if not isinstance(asked, dict):
            return asked
        known = cls.model_fields
        strange = [key for key in asked if key not in known]
        if strange:
            named = ", ".join(mend_surrogates(key[:_WORD]) for key in strange[:_NAMED])
            named += _count_rest(strange)
            raise PydanticCustomError("unknown", "{keys}: unknown; see /docs", {"keys": named})
        texts = asked.get("text")
        if isinstance(texts, list) and len(texts) > cls.limits.queue_size:
            raise too_many(len(texts), cls.limits.queue_size)
        terms = asked.get("glossary")
        if isinstance(terms, dict) and len(terms) > _TERMS:
            raise too_many(len(terms), _TERMS, "terms")
        return asked

    @model_validator(mode="after")
    def _fit_into_the_beam(self):
        if self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} is more than beam {self.beam}")
        if (self.prefix or self.alternatives) and isinstance(self.text, list):
            raise ValueError("prefix, alternatives: of one text, not of a list")
        if (self.prefix or self.alternatives) and self.glossary:
            raise ValueError("glossary: goes without prefix and alternatives")
        if self.no_repeat_ngram_size == 1:
            raise ValueError("no_repeat_ngram_size 1 must be 0, or 2 or more")
        return self


def limit_request(limits: Limits) -> type[TranslationRequest]:
    """Our own request as one server takes it: its limits are in the checks and the documents."""
    usual, said = min(USUAL_BEAM, limits.beam), TranslationRequest.model_fields["beam"].description
    beam = Field(usual, ge=1, le=limits.beam, description=said)
    return set_limits(TranslationRequest, limits, beam=(int, beam))


def set_limits(request: type[BaseModel], limits: Limits, **fields) -> type[BaseModel]:
    """A kind of request with the limits of one server.

    Args:
        request: It looks at its `limits`.
        limits: What it shall find there.
        fields: Of another type or default than its own.
    """
    limited = create_model(request.__name__, __base__=request, __doc__=request.__doc__, **fields)
    limited.limits = limits
    return limited


def too_many(found: int, most: int, what: str = "sentences") -> HTTPException:
    """The answer to a request with more than the queue holds."""
    return HTTPException(413, f"{found:,} {what}; send {most:,} at most")


def explain(errors: Sequence[dict]) -> str:
    """What is wrong with a request: the first mistakes, and how many more there are."""
    return "; ".join(map(_explain, errors[:_NAMED])) + _count_rest(errors)


def explain_unreadable(cause: BaseException | None) -> str:
    """Why the body of a request could not be read, where it is not for a mistake in its JSON."""
    if isinstance(cause, UnicodeDecodeError):
        byte = f"byte {cause.start + 1:,} is 0x{cause.object[cause.start]:02x}"
        return f"the body is not UTF-8 ({byte}); encode it so, and do not compress it"
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply; send JSON as in /docs"
    return f"the body cannot be read: {cause}"[:_MISTAKE]


def _explain(error: dict) -> str:
    """One mistake in a request: where it is, and what."""
    if error["type"] == "json_invalid":
        return f"the body is no JSON: {error['ctx']['error']} at character {error['loc'][-1] + 1:,}"
    # Of a union the location holds the types too.
    parts = [part for part in map(str, error["loc"][1:]) if part.replace("_", "").isalnum()]
    if not parts and error["type"] not in ("value_error", "unknown"):
        return "send JSON as in /docs, with the header Content-Type: application/json"
    said = ".".join(parts) + ": " * bool(parts) + error["msg"].removeprefix("Value error, ")
    return said[:_MISTAKE]


def _count_rest(found: Sequence) -> str:
    return f" and {len(found) - _NAMED:,} more" * (len(found) > _NAMED)
