"""Our own requests and answers."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.serving.bodies import MEND, Asked, Text
from resmlp_mt.serving.jobs import Found, Job, weigh
from resmlp_mt.serving.models import AUTO, Models
from resmlp_mt.serving.settings import USUAL_BEAM, Limits

_Side = Annotated[str, Field(max_length=100), MEND]  # of a term
_SEARCH = "beam nbest lenpen max_len_b no_repeat_ngram_size".split()


class TranslationRequest(Asked):
    """Texts to translate, and how."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    text: list[Text] | Text = Field(examples=["A man rides a bike.", ["A man.", "Two dogs."]])
    """A text, or several, of one or more sentences and lines."""
    source: Text = AUTO
    """Code of its language; "auto" finds it out where that matters."""
    target: Text | None = None
    """Code of the language to translate to, where there are several."""
    beam: int = Field(USUAL_BEAM, ge=1)
    """Hypotheses kept in the search. /frontend/settings has a `maxBeam`."""
    nbest: int = Field(1, ge=1)
    """Translations of each text, at most `beam`."""
    lenpen: float = Field(1.0, ge=0, le=10, allow_inf_nan=False)
    """Above 1 favours long translations."""
    split_sentences: bool | None = None
    """Translate each sentence by itself; false leaves lines whole where they are not too long.
    Default: as the model was trained."""
    recase: bool = True
    """Translate capitals, emphasis, links, tags and words that the model cannot read. Else, and
    where there is a prefix, the text is taken as typed."""
    prefix: Text = Field("", max_length=10_000)
    """The beginning of the translation. Its last word may go on."""
    alternatives: bool = False
    """Return translations that go on in different ways behind `prefix`. If that ends in a blank,
    its last word is whole."""
    glossary: dict[_Side, _Side] = Field({}, examples=[{"bike": "Drahtesel"}])
    """Terms of the texts, and the words that translations shall hold for them, of 100 characters on
    each side. The texts have at most 100,000 characters then, and the translations of a sentence's
    terms 120 subwords, divided by `beam`."""
    max_len_b: int = Field(200, ge=1, le=1000)
    """Subwords of the translation of a part, at most."""
    no_repeat_ngram_size: int = Field(0, ge=0, le=100)
    """No sequence of so many subwords comes twice in a part; 0, or 2 or more. For checkpoints."""
    parts: bool = False
    """Return what was translated at once, too."""
    attention: bool = False
    """Return where each translation was made from."""

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> "TranslationRequest":
        most = info.context.beam
        if "beam" not in self.model_fields_set:
            self.beam = min(self.beam, most)
        if self.beam > most:
            raise ValueError(f"beam {self.beam} is more than {most}")
        if (self.prefix or self.alternatives) and isinstance(self.text, list):
            raise ValueError("prefix, alternatives: of one text, not of a list")
        if (self.prefix or self.alternatives) and self.glossary:
            raise ValueError("glossary: goes without prefix and alternatives")
        self.find_search()
        return self

    def find_search(self) -> SearchOptions:
        """The options of its search; ValueError if one is impossible."""
        return SearchOptions(**{name: getattr(self, name) for name in _SEARCH})

    @property
    def weight(self) -> int:
        """About how long it takes to read."""
        return weigh([*self.texts, self.prefix], self.glossary)

    def prepare(self, models: Models, limits: Limits) -> Job:
        """The job of it; UserError if there is no model for it, or several."""
        # A prefix goes on in the case in which it was typed, so the text is taken as typed too.
        recase = self.recase and not self.prefix
        return Job(
            self.texts,
            models.choose(self.source, self.target, self.texts),
            self.find_search(),
            self.attention,
            self.prefix,
            self.alternatives,
            lambda found: _write(found, self.parts),
            reading={"split_sentences": self.split_sentences, "recase": recase},
            glossary=self.glossary,
        )


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class AttentionMap(_Answer):
    """Subwords with the end of the sentence, and a row of weights for each of the target's."""

    source: list[str]
    target: list[str]
    weights: Annotated[list[list[float]], BeforeValidator(lambda w: w.round(4).tolist())]
    source_words: list[int]
    """The word of each subword, of what stands between blanks, counted from 0."""
    target_words: list[int]
    """So too; none of a part that became nothing."""


class Translation(_Answer):
    """A translation; its score is the mean log-probability (base e) of its subwords."""

    text: str
    score: float
    attention: list[AttentionMap] | None = None
    """One for each part of a text."""
    parts: list[str] | None = None
    """The translation of each part of a text."""


class Result(_Answer):
    """The translations of a text, best first."""

    source: str
    unknown: float
    """Share of its characters that the model never saw."""
    translations: list[Translation]
    parts: list[str] | None = None
    """The parts of the text that were translated one by one."""


class TranslationResponse(BaseModel):
    """A result for each text, in order."""

    results: list[Result]


def _write(found: list[Found], with_parts: bool) -> bytes:
    """A `TranslationResponse` as JSON."""
    # One at a time, so that other threads get their turns.
    results = [_describe(one, with_parts).model_dump_json(exclude_none=True) for one in found]
    return f'{{"results":[{",".join(results)}]}}'.encode()


def _describe(found: Found, with_parts: bool) -> Result:
    translations = [
        Translation(
            text=hypothesis.text,
            score=round(hypothesis.score, 4),
            attention=[AttentionMap(**vars(shown)) for shown in hypothesis.attention] or None,
            parts=[ways[k].text for ways in found.parts] if with_parts else None,
        )
        for k, hypothesis in enumerate(found.hypotheses)
    ]
    return Result(
        source=found.text,
        unknown=round(found.hypotheses[0].unknown, 4),
        translations=translations,
        parts=[segment.text.strip() for segment in found.segments] if with_parts else None,
    )
