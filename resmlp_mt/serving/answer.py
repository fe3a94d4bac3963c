"""What our own interface answers: its form, and how it is written."""

import json

import numpy as np
from pydantic import BaseModel, Field

from resmlp_mt.serving.desk import Found
from resmlp_mt.translating.hypotheses import Hypothesis


class AttentionMap(BaseModel):
    """Subwords with the end of the sentence, and a row of weights for each of the target.

    Words are what stands between blanks, in the text as it was sent and in its translation.
    """

    source: list[str]
    target: list[str]
    weights: list[list[float]]
    source_words: list[int] = Field(description="The word of each subword, counted from 0.")
    target_words: list[int] = Field(description="So too; none of a part that became nothing.")


class Translation(BaseModel):
    """A translation; its score is the mean log-probability (base e) of its subwords."""

    text: str
    score: float
    attention: list[AttentionMap] | None = Field(None, description="One for each part of a text.")
    parts: list[str] | None = Field(None, description="The translation of each part of a text.")


class Result(BaseModel):
    """The translations of a text, best first."""

    source: str
    unknown: float = Field(description="Share of its characters that the model never saw.")
    translations: list[Translation]
    parts: list[str] | None = Field(None, description="What was translated at once.")


class TranslationResponse(BaseModel):
    """A result for each text, in order."""

    results: list[Result]


def write_results(found: list[Found], parts: bool) -> bytes:
    """A `TranslationResponse` as JSON, with the parts of the texts or without."""
    # One at a time, so that other threads get their turns.
    results = [json.dumps(_describe(one, parts), ensure_ascii=False) for one in found]
    return ('{"results":[' + ",".join(results) + "]}").encode()


def _describe(found: Found, parts: bool) -> dict:
    """A `Result`."""
    translations = list(map(_describe_translation, found.hypotheses))
    result = {
        "source": found.text,
        "unknown": round(found.hypotheses[0].unknown, 4),
        "translations": translations,
    }
    if parts:
        result["parts"] = [segment.text.strip() for segment in found.segments]
        for k, translation in enumerate(translations):
            translation["parts"] = [hypotheses[k].text for hypotheses in found.parts]
    return result


def _describe_translation(hypothesis: Hypothesis) -> dict:
    described: dict = {"text": hypothesis.text, "score": round(hypothesis.score, 4)}
    if hypothesis.attention:
        described["attention"] = [
            {
                "source": a.source,
                "target": a.target,
                "weights": _round(a.weights),
                "source_words": a.source_words,
                "target_words": a.target_words,
            }
            for a in hypothesis.attention
        ]
    return described


def _round(weights: np.ndarray) -> list[list[float]]:
    return weights.astype(float).round(4).tolist()
