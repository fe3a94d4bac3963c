"""Several HTML documents that are translated together, each in several ways."""

from itertools import chain, islice

from resmlp_mt.serving.desk import Found
from resmlp_mt.serving.html.markup import Markup
from resmlp_mt.serving.html.tagging import Translated
from resmlp_mt.serving.limits import AnswerTooLarge


def read_documents(documents: list[str]) -> list[str]:
    """The texts of all of them, one after the other.

    Raises:
        ValueError: As by `Markup`.
    """
    return [text for html in documents for text in Markup(html).texts]


def write_documents(documents: list[str], found: list[Found], room: int) -> list[list[str]]:
    """The translations of each document, best first.

    Args:
        documents: HTML.
        found: What was found for all of their texts, one after the other.
        room: Characters that all of them may have together, about.

    Raises:
        AnswerTooLarge: If they have more.
    """
    answers: list[list[str]] = []
    rest = iter(found)
    for html in documents:
        first = Markup(html)
        here = list(islice(rest, len(first.texts)))
        count = max([len(one.hypotheses) for one in here], default=1)
        markups = chain([first], (Markup(html) for _ in range(1, count)))
        answers.append([])
        for k, markup in enumerate(markups):
            translations = [_choose(one, min(k, len(one.hypotheses) - 1)) for one in here]
            answers[-1].append(markup.put(translations, room))
            room -= len(answers[-1][-1])
            if room < 0:
                raise AnswerTooLarge
    return answers


def _choose(found: Found, k: int) -> Translated:
    """The k-th translation of a text."""
    sources = [segment.text for segment in found.segments]
    parts = [hypotheses[k] for hypotheses in found.parts]
    return Translated(found.hypotheses[k].text, list(zip(sources, parts, strict=True)))
