"""Write the results tables of Markdown files from their CSV files.

A table stands between <!-- results: FILE.csv --> and <!-- end of results -->. It has all rows, and
the columns that readers compare. After the file's name the marker may say which rows, by the values
of a column, and which columns, in their order:

<!-- results: FILE.csv beam=1|5 "size=tiny int8" isa= columns=rival,rate,ratio -->

python scripts/results_table.py README.md examples/multi30k/README.md
python scripts/results_table.py --check README.md    # status 1 where a table is out of date
"""

import argparse
import csv
import re
import shlex
import sys
from pathlib import Path

_PLACE = re.compile(r"(<!-- results: (.+?) -->\n).*?(<!-- end of results -->)", re.S)
# What readers compare, where a file has it; the rest of a row stays in the CSV.
_COLUMNS = {
    "text": "text",
    "count": "times",
    "s_per_mb": "s a megabyte",
    "growth": "growth",
    "rival": "rival",
    "splitter": "splitter",
    "language": "language",
    "misses": "misses, %",
    "false_pairs": "false ends, %",
    "false_abbreviations": "behind abbreviations, %",
    "microseconds": "µs a sentence",
    "worst_seconds": "worst text, s",
    "job": "job",
    "workers": "processes",
    "size": "size",
    "type": "weights",
    "isa": "kept to",
    "stage": "stage",
    "beam": "beam",
    "vocabulary": "vocabulary",
    "arch": "preset",
    "length": "length",
    "batch_tokens": "batch",
    "max_tokens": "max tokens",
    "batch": "batch",
    "threads": "threads",
    "sentences": "sentences",
    "model": "model",
    "form": "form",
    "clients": "clients",
    "light": "light answers",
    "light_median_ms": "their median, ms",
    "light_p99_ms": "99%, ms",
    "wrong": "wrong",
    "busy_s": "successor at work, s",
    "texts": "texts a request",
    "seconds": "seconds",
    "processor_seconds": "seconds of processors",
    "system": "of which the kernel's",
    "requests": "requests",
    "errors": "errors",
    "lines": "lines",
    "rate": "a second",
    "ms": "ms a sentence",
    "shapes": "shapes",
    "update_ms": "ms an update",
    "batch_ms": "ms a batch",
    "step_ms": "ms a step",
    "past_mib": "past, MiB",
    "median_ms": "median, ms",
    "p95_ms": "95%, ms",
    "ratio": "ratio",
    "least": "least",
    "most": "most",
    "memory_first_mib": "memory at first, MiB",
    "memory_half_mib": "half way",
    "memory_10_mib": "memory at 10%, MiB",
    "memory_50_mib": "at 50%",
    "memory_90_mib": "at 90%",
    "memory_mib": "memory, MiB",
    "peak_mib": "peak, MiB",
    "kills": "kills",
    "same": "the same after them",
    "error": "error",
    "base": "base",
    "factor": "factor",
    "value": "value",
    "method": "method",
    "weight_bits": "bits",
    "preview": "preview",
    "shortlist": "shortlist",
    "megabytes": "MB",
    "set": "test set",
    "pair": "languages",
    "pairs": "pairs",
    "published": "published",
    "published_as": "as",
    "parameters": "parameters",
    "multiply_adds": "multiply-adds",
    "purpose": "training",
    "lr": "learning rate",
    "dropout": "dropout",
    "updates": "updates",
    "flags": "flags",
    "seed": "seed",
    "seeds": "seeds",
    "valid_nll": "valid NLL",
    "bits_per_character": "bits a character",
    "difference": "to base",
    "valid_bleu": "valid BLEU",
    "brevity": "brevity",
    "bleu": "BLEU",
    "chrf": "chrF",
    "bleu_lowercase": "BLEU, lowercase",
    "bleu_tokenized": "BLEU, tokenised",
    "bleu_split": "compound-split",
    "rate_1": "a second, one by one",
    "rate_32": "in batches of 32",
    "top1": "top-1",
    "updates_in_time": "updates in the same time",
    "top1_in_time": "top-1 then",
    "top5": "top-5",
    "kilobytes": "kB",
    "accuracy": "accuracy",
    "accuracy_first_words": "of the first five words",
    "valid_loss": "loss",
    "source": "published by",
    "machine": "machine",
}
_COUNTS = {"parameters", "multiply_adds", "updates", "updates_in_time", "pairs"}
# Shown where the rows of a file differ in them.
_CONDITIONS = {"threads", "machine", "pairs", "isa", "beam", "stage"}


def fill_tables(path: Path) -> str:
    """The text of a Markdown file with its tables written anew."""
    return _PLACE.sub(
        lambda place: place[1] + _table(path.parent, *shlex.split(place[2])) + place[3],
        path.read_text(encoding="utf-8"),
    )


def _table(folder: Path, file: str, *filters: str) -> str:
    with open(folder / file, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    wanted = dict(text.split("=", 1) for text in filters)
    columns = wanted.pop("columns", None)
    for name, values in wanted.items():
        rows = [row for row in rows if row[name] in values.split("|")]
    if not rows:
        raise ValueError(f"{file}: no row has {' '.join(filters)}")
    columns = columns.split(",") if columns else _choose_columns(rows)
    lines = [[_COLUMNS[name] for name in columns], ["---"] * len(columns)]
    lines += [[_show(name, row[name]) for name in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _choose_columns(rows: list[dict]) -> list[str]:
    columns = [name for name in _COLUMNS if name in rows[0]]
    alike = {name for name in columns if len({row[name] for row in rows}) == 1}
    return [name for name in columns if name not in _CONDITIONS & alike]


def _show(name: str, value: str) -> str:
    if name == "rival":
        return value.replace("norms before", "pre-norm")  # what older rows call it
    if name == "batch_tokens":
        return f"{int(value):,} tokens" if int(value) else "one sentence"
    return f"{int(value):,}" if value and name in _COUNTS else value


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = [path for path in arguments.files if fill_tables(path) != path.read_text("utf-8")]
    if arguments.check:
        for path in stale:
            print(f"{path}: the results table is out of date", file=sys.stderr)
        return bool(stale)
    for path in stale:
        path.write_text(fill_tables(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
