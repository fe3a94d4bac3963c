"""Raw parallel text -> subwords, dictionaries and binarized data, with a report."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import sentencepiece
from tqdm import tqdm

from resmlp_mt.data.output import whole_folder
from resmlp_mt.data.sentences import write_card
from resmlp_mt.data.subwords import JOINED_NAME, load_subwords, train_subwords
from resmlp_mt.data.text import read_pairs
from resmlp_mt.errors import UserError

REPORT_NAME = "report.json"


@dataclass
class SplitReport:
    """What became of one split. Lengths are in subwords, without the end-of-sentence symbol."""

    prefix: str
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    mean_length: dict[str, float] = field(default_factory=dict)
    max_length: dict[str, int] = field(default_factory=dict)
    unknown_rate: dict[str, float] = field(default_factory=dict)


def prepare(
    source_lang: str,
    target_lang: str,
    splits: dict[str, str],
    out: Path,
    vocab_size: int,
    joined: bool,
    model_type: str,
    max_length: int,
    max_ratio: float,
    subword_sentences: int,
    workers: int,
) -> dict[str, SplitReport]:
    """Make a data-bin folder from raw text, in memory that does not grow with it.

    The folder holds what fairseq-preprocess makes, the SentencePiece model, a note whether the
    training text is of single sentences, the raw text of the splits other than train under raw/,
    and the report.

    Args:
        source_lang, target_lang: Language codes, the suffixes of the files.
        splits: Prefix of the raw files of each split: train, valid, test, test1 ...
        out: The folder to make. A folder that `prepare` made is replaced.
        vocab_size: Subwords, of both languages together where they are joined.
        joined: One SentencePiece model and one dictionary for both languages.
        model_type: "bpe" or "unigram".
        max_length: Longest training sentence in subwords; longer pairs are dropped.
        max_ratio: Largest ratio of the two lengths in training; pairs beyond are dropped.
        subword_sentences: Sentences at most that a SentencePiece model learns from; of more, that
            many spread evenly.
        workers: Processes that binarize.

    Returns:
        A report for each split.

    Raises:
        UserError: If a file is missing, empty, not parallel or not UTF-8, if no training pair is
            left, or if `out` holds something else.
    """
    langs = source_lang, target_lang
    if source_lang == target_lang:
        raise UserError(f"--source-lang and --target-lang are both {source_lang}")
    with whole_folder(out, mark=REPORT_NAME) as folder:
        # Reading everything first shows a mistake in the last line before the long work.
        counts = {
            split: sum(1 for _ in _watch(read_pairs(prefix, *langs), f"read {prefix}"))
            for split, prefix in splits.items()
        }
        reports = {split: SplitReport(prefix) for split, prefix in splits.items()}
        learnt = subword_sentences // 2 if joined else subword_sentences

        def read_learnt():
            return _spread(read_pairs(splits["train"], *langs), counts["train"], learnt)

        models = _train_models(read_learnt, langs, vocab_size, joined, model_type, folder)
        text = folder / "text"
        text.mkdir()
        for split, prefix in splits.items():
            encoded = _encode(
                _watch(read_pairs(prefix, *langs), f"encode {split}", counts[split]), models
            )
            if split == "train":
                encoded = _drop_outliers(encoded, reports[split], max_length, max_ratio)
            _write_sides(encoded, text / split, langs, reports[split])
        if not reports["train"].kept:
            raise UserError(
                f"{splits['train']}: no pair is left for training "
                f"(dropped: {reports['train'].dropped})"
            )
        _binarize(text, langs, list(splits), joined, workers, folder)
        _count_unknown(folder, langs, text, reports)
        write_card(folder, (pair[0] for pair in read_learnt()), source_lang)
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


def _watch(items: Iterable, what: str, total: int | None = None) -> Iterable:
    # disable=None: a bar on a terminal, nothing in a file or a pipe.
    return tqdm(items, desc=what, total=total, unit=" lines", disable=None, leave=False)


def _drop_outliers(
    pairs: Iterable[tuple[list[str], list[str]]],
    report: SplitReport,
    max_length: int,
    max_ratio: float,
) -> Iterator[tuple[list[str], list[str]]]:
    for pair in pairs:
        short, long = sorted(map(len, pair))
        if long > max_length:
            _drop(report, f"a side has more than {max_length} subwords")
        elif short == 0:
            _drop(report, "a side is empty")
        elif long > max_ratio * short:
            _drop(report, f"a side is more than {max_ratio:g} times as long as the other")
        else:
            yield pair


def _drop(report: SplitReport, reason: str) -> None:
    report.dropped[reason] = report.dropped.get(reason, 0) + 1


def _spread(items: Iterable, total: int, wanted: int) -> Iterator:
    """Of `total` items, those `wanted` that are spread evenly; all where there are fewer."""
    for i, item in enumerate(items):
        if total <= wanted or i * wanted // total != (i + 1) * wanted // total:
            yield item


def _train_models(
    read: Callable[[], Iterable[tuple[str, str]]],
    langs: tuple[str, str],
    vocab_size: int,
    joined: bool,
    model_type: str,
    folder: Path,
) -> list[sentencepiece.SentencePieceProcessor]:
    sides = (
        {JOINED_NAME: slice(2)}
        if joined
        else {f"spm.{lang}.model": slice(i, i + 1) for i, lang in enumerate(langs)}
    )
    for name, side in sides.items():
        lines = _watch((line for pair in read() for line in pair[side]), f"learn {name}")
        (folder / name).write_bytes(train_subwords(lines, vocab_size, model_type))
    models = [load_subwords(folder / name) for name in sides]
    return models * 2 if joined else models


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
) -> None:
    total, longest = Counter(), Counter()
    with ExitStack() as stack:
        streams = [
            stack.enter_context(open(f"{path}.{lang}", "w", encoding="utf-8")) for lang in langs
        ]
        for pair in pairs:
            report.kept += 1
            for lang, stream, pieces in zip(langs, streams, pair, strict=True):
                stream.write(" ".join(pieces) + "\n")
                total[lang] += len(pieces)
                longest[lang] = max(longest[lang], len(pieces))
    report.mean_length = {lang: total[lang] / max(report.kept, 1) for lang in langs}
    report.max_length = {lang: longest[lang] for lang in langs}


def _binarize(
    text: Path, langs: tuple[str, str], splits: list[str], joined: bool, workers: int, folder: Path
) -> None:
    from fairseq import options
    from fairseq_cli import preprocess

    tests = [str(text / split) for split in splits if split.startswith("test")]
    arguments = ["--source-lang", langs[0], "--target-lang", langs[1]]
    arguments += ["--trainpref", str(text / "train"), "--validpref", str(text / "valid")]
    arguments += ["--testpref", ",".join(tests)] if tests else []
    arguments += ["--joined-dictionary"] if joined else []
    arguments += ["--destdir", str(folder), "--workers", str(workers)]
    logging.getLogger("fairseq_cli.preprocess").setLevel(logging.WARNING)
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    (folder / "preprocess.log").unlink(missing_ok=True)


def _count_unknown(
    folder: Path, langs: tuple[str, str], text: Path, reports: dict[str, SplitReport]
) -> None:
    from fairseq.data import Dictionary

    for lang in langs:
        dictionary = Dictionary.load(str(folder / f"dict.{lang}.txt"))
        for split, report in reports.items():
            unknown = total = 0
            with open(f"{text / split}.{lang}", encoding="utf-8") as lines:
                for line in lines:
                    pieces = line.split()
                    total += len(pieces)
                    unknown += sum(dictionary.index(p) == dictionary.unk() for p in pieces)
            report.unknown_rate[lang] = unknown / max(total, 1)


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
