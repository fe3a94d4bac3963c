"""Raw parallel text -> subwords, dictionaries and binarized data, with a report."""

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from resmlp_mt.data.binarize import write_binary
from resmlp_mt.data.binary_check import REPORT_NAME
from resmlp_mt.data.card import read_card, write_card
from resmlp_mt.data.encode import Encoder, Totals, find_indices, write_numbers
from resmlp_mt.data.filters import Limits, Sieve
from resmlp_mt.data.prepare_report import SplitReport
from resmlp_mt.data.prepare_subwords import (
    NewSubwords,
    make_dictionaries,
    spread,
    take_models,
    train_models,
    watch,
)
from resmlp_mt.data.processes import map_blocks
from resmlp_mt.data.reading import Block, find_side, read_blocks, read_pairs
from resmlp_mt.data.subwords import BESIDE, count_rewritten
from resmlp_mt.data.vocabulary import Vocabulary
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder
from resmlp_mt.files.sums import sum_files
from resmlp_mt.text.sentences import count_several

# The names of other outputs, here and of scripts that prepare text for a study.
_SPLITS = ("train", "train[0-9]", "valid", "valid[0-9]", "test", "test[0-9]", "test[0-9][0-9]")
_RAW = (*_SPLITS, "monolingual")
_MADE = (
    *(f"{split}.*-*.*.{kind}" for split in _SPLITS for kind in ("bin", "idx")),
    *BESIDE,
    *(f"raw/{name}.*" for name in _RAW),
)
_WORK = "text"  # a folder for what is removed in the end
_SAMPLE = 100_000  # pairs, which tell what the training text is like
_SAMPLE_BATCH = 2000
_USUAL, _MORE = 0.99, 1.25  # the share of lines whose length is usual, and a factor of that
_LEAST = 32  # subwords that any sentence may have


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

    The folder holds what fairseq-preprocess makes, the SentencePiece model, a note of what a model
    may expect of its text, the raw text of the splits other than train under raw/, and the report.

    Args:
        langs: Codes of the source and the target language, the suffixes of the files.
        splits: Prefix of the raw files of each split: train, valid, test, test1 ...
        out: The folder to make. One that `prepare` made is replaced, if its subwords are the same.
        subwords: To learn; or a folder whose SentencePiece models and dictionaries are taken.
        limits: Of the training pairs that are kept.
        filters: Names of filters of training pairs, applied before subwords are learnt: keys of
            `resmlp_mt.data.filters.FILTERS`.
        workers: Processes that filter and encode.

    Returns:
        A report for each split.

    Raises:
        UserError: If a file is missing, empty, not parallel or not UTF-8, if no training pair is
            left, or if `out` holds something else, or other subwords.
    """
    if langs[0] == langs[1]:
        raise UserError(f"--source-lang and --target-lang are both {langs[0]}")
    _refuse_to_lose(splits, langs, out)
    with whole_folder(out, REPORT_NAME, *_MADE) as folder:
        # Reading everything first shows a mistake in the last line before the long work.
        counts = {split: _count(prefix, langs) for split, prefix in splits.items()}
        reports = {split: SplitReport(prefix) for split, prefix in splits.items()}
        train = reports["train"]
        (folder / _WORK).mkdir()
        if filters:
            kept = _filter(splits["train"], langs, filters, counts["train"], train.dropped, workers)
            _write_raw(kept, folder / _WORK, "filtered", langs)
            counts["train"] -= sum(train.dropped.values())
            _refuse_nothing(counts["train"], train)
            splits = splits | {"train": str(folder / _WORK / "filtered")}
        if isinstance(subwords, Path):
            models, known = take_models(subwords, langs, folder)
        else:
            read = partial(read_pairs, splits["train"], *langs)
            models, known = train_models(read, counts["train"], langs, subwords, folder), None
        _refuse_others(folder, out, "*.model")
        totals = {}
        for split, prefix in splits.items():
            encode = Encoder(models, known, limits if split == "train" else None)
            encoded = map_blocks(encode, read_blocks(prefix, *langs), workers)
            totals[split] = write_numbers(
                _watch_blocks(encoded, f"encode {split}", counts[split]),
                [folder / _WORK / f"{split}.{lang}" for lang in langs],
            )
            _report(totals[split], langs, models, reports[split])
        _refuse_nothing(train.kept, train)
        if known is None:
            known = make_dictionaries(models, totals["train"], langs, folder)
        _refuse_others(folder, out, "dict.*.txt")
        for split, report in reports.items():
            _binarize(split, totals[split], models, known, langs, folder, report)
        sample = spread(read_pairs(splits["train"], *langs), counts["train"], _SAMPLE)
        short = (pair for pair in sample if not any(map(limits.is_too_long, pair)))
        _look_at_all(short, models[1], langs[0], workers, train)
        up_to = np.cumsum(totals["train"].lengths[0])  # lines that are no longer
        usual = max(_LEAST, int(_MORE * np.searchsorted(up_to, _USUAL * up_to[-1])))
        if isinstance(subwords, Path):  # its model knows longer lines, or all
            longer = read_card(subwords).usual_length
            usual = longer and max(longer, usual)
        write_card(folder, train.several_sentences, usual)
        shutil.rmtree(folder / _WORK)
        for split, prefix in splits.items():
            if split != "train":
                _write_raw(read_pairs(prefix, *langs), folder / "raw", split, langs)
        report = {split: asdict(report) for split, report in reports.items()}
        made = sorted(path.name for path in folder.iterdir() if path.is_file())
        report["sha256"] = sum_files(folder, made)
        (folder / REPORT_NAME).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return reports


def _refuse_to_lose(splits: dict[str, str], langs: tuple[str, str], out: Path) -> None:
    """Refuse input within the output folder that would be lost: all but what is made again."""
    raw = out.resolve() / "raw"
    for split, prefix in splits.items():
        for lang in langs:
            path = find_side(prefix, lang).resolve()
            again = split != "train" and path == raw / f"{split}.{lang}"
            if raw in path.parents and not again:
                raise UserError(f"{path}: {out} is made anew without it; name another --out")


def _refuse_nothing(left: int, report: SplitReport) -> None:
    if not left:
        raise UserError(
            f"{report.prefix}: no pair is left for training (dropped: {report.dropped})"
        )


def _refuse_others(folder: Path, out: Path, names: str) -> None:
    """Refuse to replace SentencePiece models or dictionaries by others, or by none.

    Those of other languages have other names.
    """
    read = Path.read_bytes if names == "*.model" else lambda path: Vocabulary(path).symbols
    for old in out.glob(names):
        new = folder / old.name
        if not new.is_file() or read(old) != read(new):
            raise UserError(f"{old}: other subwords than these; name another --out, or remove this")


def _watch_blocks(found: Iterable[tuple[Block, Any]], what: str, total: int) -> Iterator:
    """The output of each block."""
    with watch((), what, total) as bar:
        for block, result in found:
            yield result
            bar.update(len(block))


def _count(prefix: str, langs: tuple[str, str]) -> int:
    count = 0
    with watch((), f"read {prefix}") as bar:
        for block in read_blocks(prefix, *langs):
            block.check()
            count += len(block)
            bar.update(len(block))
    return count


def _filter(
    prefix: str,
    langs: tuple[str, str],
    filters: Collection[str],
    total: int,
    dropped: dict[str, int],
    workers: int,
) -> Iterator[tuple[str, str]]:
    sieve = Sieve(filters, langs)
    is_kept = sieve.make_choice(dropped)
    with watch((), "filter train", total) as bar:
        for block, found in map_blocks(sieve, read_blocks(prefix, *langs), workers):
            pairs = zip(*block.decode(), strict=True)
            yield from (pair for pair, f in zip(pairs, found, strict=True) if is_kept(f))
            bar.update(len(block))


def _report(totals: Totals, langs: tuple[str, str], models: Sequence, report: SplitReport) -> None:
    report.kept = totals.kept
    report.dropped.update(totals.dropped)
    for lang, counts, lengths in zip(langs, totals.counts, totals.lengths, strict=True):
        report.mean_length[lang] = (int(counts.sum()) - totals.kept) / max(totals.kept, 1)
        report.max_length[lang] = len(lengths) - 1


def _look_at_all(
    sample: Iterator[tuple[str, str]],
    model: sentencepiece.SentencePieceProcessor,
    lang: str,
    workers: int,
    report: SplitReport,
) -> None:
    """Find the share of sources with several sentences, and that of rewritten targets."""
    batches = iter(lambda: list(islice(sample, _SAMPLE_BATCH)), [])
    look_at = partial(_look_at, model=model, lang=lang)
    found = [(len(batch), *seen) for batch, seen in map_blocks(look_at, batches, workers)]
    looked_at, several, rewritten = map(sum, zip(*found, strict=True))
    report.several_sentences, report.rewritten = several / looked_at, rewritten / looked_at


def _look_at(
    pairs: list[tuple[str, str]], model: sentencepiece.SentencePieceProcessor, lang: str
) -> tuple[int, int]:
    """Count the sources of a language with several sentences, and the rewritten targets."""
    sources, targets = zip(*pairs, strict=True)
    return count_several(sources, lang), count_rewritten(targets, model)


def _binarize(
    split: str,
    totals: Totals,
    models: list[sentencepiece.SentencePieceProcessor],
    known: list[Vocabulary],
    langs: tuple[str, str],
    folder: Path,
    report: SplitReport,
) -> None:
    """Turn the numbers of a split into fairseq's files, and report the share without a symbol."""
    for lang, model, dictionary, seen in zip(langs, models, known, totals.counts, strict=True):
        table = find_indices(model, dictionary)
        numbers, sizes = (folder / _WORK / f"{split}.{lang}.{k}" for k in ("numbers", "sizes"))
        prefix = folder / f"{split}.{'-'.join(langs)}.{lang}"
        write_binary(numbers, sizes, table, len(dictionary), prefix)
        numbers.unlink()  # as large as the result
        unknown = int(seen[table[: len(seen)] == dictionary.unk()].sum())
        report.unknown_rate[lang] = unknown / max(int(seen.sum()) - report.kept, 1)


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
