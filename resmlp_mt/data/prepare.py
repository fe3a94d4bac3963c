"""Raw parallel text -> subwords, dictionaries and binarized data, with a report."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import sentencepiece
from tqdm import tqdm

from resmlp_mt.data.binarize import binarize, share_unknown, write_dictionaries
from resmlp_mt.data.filters import Limits, filter_lengths, filter_pairs
from resmlp_mt.data.sentences import write_card
from resmlp_mt.data.subwords import JOINED_NAME, find_subwords, load_subwords, train_subwords
from resmlp_mt.data.text import read_pairs
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder

REPORT_NAME = "report.json"
_CARD_LINES = 100_000  # of training text, which tell whether it is of single sentences


@dataclass
class SplitReport:
    """What became of one split. Lengths are in subwords, without the end-of-sentence symbol."""

    prefix: str
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    mean_length: dict[str, float] = field(default_factory=dict)
    max_length: dict[str, int] = field(default_factory=dict)
    unknown_rate: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NewSubwords:
    """SentencePiece models to learn from the training text.

    Attributes:
        vocab_size: Subwords, of both languages together where they are joined.
        joined: One SentencePiece model and one dictionary for both languages.
        model_type: "bpe" or "unigram".
        character_coverage, normalization_rule_name, user_defined_symbols: As `train_subwords` takes
            them.
        sentences: Most sentences that a model learns from. Of a longer text it takes that many,
            spread evenly.
    """

    vocab_size: int
    joined: bool
    model_type: str
    character_coverage: float
    normalization_rule_name: str
    sentences: int
    user_defined_symbols: tuple[str, ...] = ()


def prepare(
    langs: tuple[str, str],
    splits: dict[str, str],
    out: Path,
    subwords: NewSubwords | Path,
    limits: Limits,
    filters: Collection[str],
    workers: int,
) -> dict[str, SplitReport]:
    """Make a data-bin folder from raw text, in memory that does not grow with it.

    Only the filter of duplicates keeps something of each pair: a hash.

    The folder holds what fairseq-preprocess makes, the SentencePiece model, a note whether the
    training text is of single sentences, the raw text of the splits other than train under raw/,
    and the report.

    Args:
        langs: Codes of the source and the target language, the suffixes of the files.
        splits: Prefix of the raw files of each split: train, valid, test, test1 ...
        out: The folder to make. A folder that `prepare` made is replaced.
        subwords: What to learn; or a folder whose SentencePiece models and dictionaries are taken.
        limits: Which training pairs are kept.
        filters: Which others are left out, before subwords are learnt: keys of
            `resmlp_mt.data.filters.FILTERS`.
        workers: Processes that binarize.

    Returns:
        A report for each split.

    Raises:
        UserError: If a file is missing, empty, not parallel or not UTF-8, if no training pair is
            left, or if `out` holds something else.
    """
    if langs[0] == langs[1]:
        raise UserError(f"--source-lang and --target-lang are both {langs[0]}")
    with whole_folder(out, mark=REPORT_NAME) as folder:
        # Reading everything first shows a mistake in the last line before the long work.
        counts = {
            split: sum(1 for _ in _watch(read_pairs(prefix, *langs), f"read {prefix}"))
            for split, prefix in splits.items()
        }
        reports = {split: SplitReport(prefix) for split, prefix in splits.items()}
        text = folder / "text"
        text.mkdir()
        if filters:
            pairs = _watch(read_pairs(splits["train"], *langs), "filter train", counts["train"])
            dropped = reports["train"].dropped
            _write_raw(filter_pairs(pairs, filters, langs, dropped), text, "filtered", langs)
            counts["train"] -= sum(dropped.values())
            _refuse_nothing(counts["train"], reports["train"])
            splits = splits | {"train": str(text / "filtered")}
        if isinstance(subwords, Path):
            models = _take_models(subwords, langs, folder)
        else:
            learnt = subwords.sentences // (2 if subwords.joined else 1)

            def read_learnt():
                return _spread(read_pairs(splits["train"], *langs), counts["train"], learnt)

            models = _train_models(read_learnt, langs, subwords, folder)
        for split, prefix in splits.items():
            encoded = _encode(
                _watch(read_pairs(prefix, *langs), f"encode {split}", counts[split]), models
            )
            if split == "train":
                encoded = filter_lengths(encoded, limits, reports[split].dropped)
            pieces = _write_sides(encoded, text / split, langs, reports[split])
            if split == "train":
                trained_on = pieces
        _refuse_nothing(reports["train"].kept, reports["train"])
        if isinstance(subwords, Path):
            dictionaries = [subwords / f"dict.{lang}.txt" for lang in langs]
        else:
            dictionaries = write_dictionaries(models, trained_on, langs, text)
        binarize(text, langs, list(splits), dictionaries, workers, folder)
        for lang in langs:
            for split, report in reports.items():
                report.unknown_rate[lang] = share_unknown(folder, lang, text / split)
        pairs = _spread(read_pairs(splits["train"], *langs), counts["train"], _CARD_LINES)
        write_card(folder, (source for source, _ in pairs), langs[0])
        for path in text.iterdir():
            path.unlink()
        text.rmdir()
        for split, prefix in splits.items():
            if split != "train":
                _write_raw(read_pairs(prefix, *langs), folder / "raw", split, langs)
        (folder / REPORT_NAME).write_text(
            json.dumps({split: asdict(report) for split, report in reports.items()}, indent=1)
            + "\n",
            encoding="utf-8",
        )
    return reports


def format_report(reports: dict[str, SplitReport]) -> str:
    """The reports as a table to read."""
    lines = []
    for split, report in reports.items():
        lines.append(f"{split}: {report.kept:,} pairs from {report.prefix}")
        for reason, count in report.dropped.items():
            lines.append(f"  dropped {count:,}: {reason}")
        for lang in report.mean_length:
            lines.append(
                f"  {lang}: {report.mean_length[lang]:.1f} subwords a sentence, longest "
                f"{report.max_length[lang]}, unknown {report.unknown_rate[lang]:.3%}"
            )
    return "\n".join(lines)


def _refuse_nothing(left: int, report: SplitReport) -> None:
    if not left:
        raise UserError(
            f"{report.prefix}: no pair is left for training (dropped: {report.dropped})"
        )


def _watch(items: Iterable, what: str, total: int | None = None) -> Iterable:
    # disable=None: a bar on a terminal, nothing in a file or a pipe.
    return tqdm(items, desc=what, total=total, unit=" lines", disable=None, leave=False)


def _spread(items: Iterable, total: int, wanted: int) -> Iterator:
    """Choose `wanted` of `total` items, spread evenly; all where there are fewer."""
    for i, item in enumerate(items):
        if total <= wanted or i * wanted // total != (i + 1) * wanted // total:
            yield item


def _train_models(
    read: Callable[[], Iterable[tuple[str, str]]],
    langs: tuple[str, str],
    subwords: NewSubwords,
    folder: Path,
) -> list[sentencepiece.SentencePieceProcessor]:
    sides = (
        {JOINED_NAME: slice(2)}
        if subwords.joined
        else {f"spm.{lang}.model": slice(i, i + 1) for i, lang in enumerate(langs)}
    )
    for name, side in sides.items():
        lines = _watch((line for pair in read() for line in pair[side]), f"learn {name}")
        model = train_subwords(
            lines,
            subwords.vocab_size,
            subwords.model_type,
            subwords.character_coverage,
            subwords.normalization_rule_name,
            subwords.user_defined_symbols,
        )
        (folder / name).write_bytes(model)
    models = [load_subwords(folder / name) for name in sides]
    return models * 2 if subwords.joined else models


def _take_models(
    source: Path, langs: tuple[str, str], folder: Path
) -> list[sentencepiece.SentencePieceProcessor]:
    """Copy the SentencePiece models of another folder, and load them."""
    paths = [find_subwords(source, lang) for lang in langs]
    for path in set(paths):
        shutil.copy(path, folder / path.name)
    return [load_subwords(path) for path in paths]


def _encode(
    pairs: Iterable[tuple[str, str]], models: list
) -> Iterator[tuple[list[str], list[str]]]:
    for pair in pairs:
        yield tuple(
            model.encode(line, out_type=str) for model, line in zip(models, pair, strict=True)
        )


def _write_sides(
    pairs: Iterable[tuple[list[str], list[str]]],
    path: Path,
    langs: tuple[str, str],
    report: SplitReport,
) -> list[Counter]:
    """Write the pieces to a file a language, and count how often each occurs in it."""
    total, longest = Counter(), Counter()
    occurrences = [Counter(), Counter()]
    with ExitStack() as stack:
        streams = [
            stack.enter_context(open(f"{path}.{lang}", "w", encoding="utf-8")) for lang in langs
        ]
        for pair in pairs:
            report.kept += 1
            for lang, stream, seen, pieces in zip(langs, streams, occurrences, pair, strict=True):
                stream.write(" ".join(pieces) + "\n")
                seen.update(pieces)
                total[lang] += len(pieces)
                longest[lang] = max(longest[lang], len(pieces))
    report.mean_length = {lang: total[lang] / max(report.kept, 1) for lang in langs}
    report.max_length = {lang: longest[lang] for lang in langs}
    return occurrences


def _write_raw(
    pairs: Iterable[tuple[str, str]], folder: Path, split: str, langs: tuple[str, str]
) -> None:
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        streams = [
            stack.enter_context(open(folder / f"{split}.{lang}", "w", encoding="utf-8"))
            for lang in langs
        ]
        for pair in pairs:
            for stream, line in zip(streams, pair, strict=True):
                stream.write(f"{line}\n")
