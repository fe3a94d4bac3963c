"""Several HTML documents that are translated together, each in several ways."""

from itertools import islice

from resmlp_mt.serving.html.markup import Markup


def read_documents(documents: list[str]) -> list[str]:
    """The texts of all of them, one after the other.

    Raises:
        ValueError: As by `Markup`.
    """
    return [text for html in documents for text in Markup(html).texts]


def write_documents(documents: list[str], translations: list[list[str]]) -> list[list[str]]:
    """The translations of each document, best first.

    Args:
        documents: HTML.
        translations: Of each of their texts, one after the other, best first.
    """
    answers, rest = [], iter(translations)
    for html in documents:
        markup = Markup(html)
        here = list(islice(rest, len(markup.texts)))
        answers.append([])
        for k in range(max(map(len, here), default=1)):
            each = [ways[min(k, len(ways) - 1)] for ways in here]
            answers[-1].append((Markup(html) if k else markup).put(each))
    return answers
