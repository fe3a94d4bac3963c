"""Options of a translation beside those of its search."""

from dataclasses import dataclass, fields
from reprlib import repr as shorten
from typing import Any

from resmlp_mt.engines.options import FROM_0, FROM_1, TRUE_OR_FALSE, SearchOptions, is_count


def choose_search(options: SearchOptions | None, named: dict[str, Any], held: str) -> SearchOptions:
    """The options of a search, which are given whole or one by one.

    `held` is "words", "glossary" or "". Words come in the given order and terms of a glossary in
    any, where no option says otherwise.

    Raises:
        ValueError: If one is impossible or unknown, they are given both ways, or constraints do
            not go with what is held.
    """
    if not isinstance(options, SearchOptions | None):
        raise ValueError(f"options {shorten(options)} must be a SearchOptions")
    if options is not None and named:
        raise ValueError(f"{next(iter(named))}: give it in the options, or all without them")
    known = [field.name for field in fields(SearchOptions)]
    for name in named:
        if name not in known:
            raise ValueError(f"{name}: no such option; there are {', '.join(known)}")
    order = {"words": "ordered", "glossary": "unordered"}.get(held)
    options = options or SearchOptions(**{"constraints": order} | named)
    if bool(held) != bool(options.constraints):
        raise ValueError(
            "words, glossary: go with constraints in the options, ordered or unordered"
        )
    return options


@dataclass(frozen=True)
class ReadingOptions:
    """How lines are read and put into batches, whatever is searched for.

    Attributes: as the arguments of `Translator.translate_nbest`.

    Raises:
        ValueError: If one of them is impossible; the message begins with its name and value.
    """

    batch_tokens: int
    buffer_size: int
    split_sentences: bool | None
    recase: bool
    attention: bool
    first: int

    def __post_init__(self):
        for name, value in vars(self).items():
            if name in ("batch_tokens", "buffer_size"):
                right, rule = is_count(value, 1), FROM_1
            elif name == "first":
                right, rule = is_count(value), FROM_0
            elif name == "split_sentences":
                right, rule = isinstance(value, bool | None), "must be True, False or None"
            else:
                right, rule = isinstance(value, bool), TRUE_OR_FALSE
            if not right:
                raise ValueError(f"{name} {shorten(value)} {rule}")
