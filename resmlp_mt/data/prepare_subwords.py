"""The SentencePiece models and dictionaries of a text: learnt from it, or taken from elsewhere."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
from tqdm import tqdm

from resmlp_mt.data.binarize import write_dictionaries
from resmlp_mt.data.encode import Totals
from resmlp_mt.data.subwords import JOINED_NAME, find_subwords, load_subwords, train_subwords
from resmlp_mt.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class NewSubwords:
    """SentencePiece models to learn from the training text.

    Attributes:
        joined: One SentencePiece model and one dictionary for both languages.
        sentences: Most sentences that a model learns from. Of a longer text it takes that many,
            spread evenly.
        options: As `train_subwords` takes them.
    """

    joined: bool
    sentences: int
    options: dict[str, Any]


def watch(items: Iterable, what: str, total: int | None = None) -> tqdm:
    """Yield items, with a bar on a terminal and nothing in a file or a pipe."""
    return tqdm(items, desc=what, total=total, unit=" lines", disable=None, leave=False)


def spread(items: Iterable, total: int, wanted: int) -> Iterator:
    """Choose `wanted` of `total` items, spread evenly; all where there are fewer."""
    for i, item in enumerate(items):
        if total <= wanted or i * wanted // total != (i + 1) * wanted // total:
            yield item


def train_models(
    read: Callable[[], Iterable[tuple[str, str]]],
    total: int,
    langs: tuple[str, str],
    subwords: NewSubwords,
    folder: Path,
) -> list[sentencepiece.SentencePieceProcessor]:
    """Learn SentencePiece models of the pairs that `read` yields, `total` in number."""
    sides = (
        {JOINED_NAME: slice(2)}
        if subwords.joined
        else {f"spm.{lang}.model": slice(i, i + 1) for i, lang in enumerate(langs)}
    )
    wanted = max(1, subwords.sentences // (2 if subwords.joined else 1))
    for name, side in sides.items():
        pairs = spread(read(), total, wanted)
        model = train_subwords(
            watch((line for pair in pairs for line in pair[side]), f"learn {name}"),
            **subwords.options,
            text="the text" if subwords.joined else f"the text in {langs[side.start]}",
        )
        (folder / name).write_bytes(model)
    models = [load_subwords(folder / name) for name in sides]
    return models * 2 if subwords.joined else models


def take_models(
    source: Path, langs: tuple[str, str], folder: Path
) -> tuple[list[sentencepiece.SentencePieceProcessor], list[Vocabulary]]:
    """Copy the SentencePiece models and dictionaries of another folder, and load them."""
    models = [find_subwords(source, lang) for lang in langs]
    dictionaries = [source / f"dict.{lang}.txt" for lang in langs]
    for path in {*models, *dictionaries}:
        shutil.copy(path, folder)
    return list(map(load_subwords, models)), list(map(Vocabulary, dictionaries))


def make_dictionaries(
    models: list[sentencepiece.SentencePieceProcessor],
    totals: Totals,
    langs: tuple[str, str],
    folder: Path,
) -> list[Vocabulary]:
    """Dictionaries of all subwords, in the order of how often they are in the training text."""
    seen = [
        {model.id_to_piece(i): int(n) for i, n in enumerate(counts[: len(model)])}
        for model, counts in zip(models, totals.counts, strict=True)
    ]
    return list(map(Vocabulary, write_dictionaries(models, seen, langs, folder)))
