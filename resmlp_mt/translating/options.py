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

    Attributes:
        batch_tokens: Source subwords in a batch, padding included.
        buffer_size: Lines that are sorted by length and batched together.
        split_sentences: Cut lines into sentences. None: where the model wants it.
        recase: Read what is in capitals in lower case, and translate it to capitals.
        attention: Find the attention of the translations too.
        first: Number of the first line.

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
        for name, least, rule in (
            ("batch_tokens", 1, FROM_1),
            ("buffer_size", 1, FROM_1),
            ("first", 0, FROM_0),
        ):
            if not is_count(value := getattr(self, name), least):
                raise ValueError(f"{name} {value!r} {rule}")
        for name in ("recase", "attention"):
            if not isinstance(value := getattr(self, name), bool):
                raise ValueError(f"{name} {shorten(value)} {TRUE_OR_FALSE}")
        if not isinstance(self.split_sentences, bool | None):
            raise ValueError(
                f"split_sentences {self.split_sentences!r} must be True, False or None"
            )
