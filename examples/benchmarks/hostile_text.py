"""Time that a text takes that was made to take long, without a model.

    python examples/benchmarks/hostile_text.py --csv examples/benchmarks/hostile_text.csv

Each text is one thing over and over, in two sizes, or has a word that always differs in that thing.
It is split and read by all rules, and what is read is written again, as if a model had said it:
what remains beside the search. Equal parts are read and written once. The subwords are those of
en-de. `growth` is the time of the larger text by that of the smaller, for twice the size.
"""

import argparse
import csv
import platform
import sys
import time
from pathlib import Path

import numpy as np

from resmlp_mt.data.card import read_card
from resmlp_mt.data.codec import TextCodec
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.files.output import whole_file
from resmlp_mt.text.pipeline import Pipeline

# What stands in each over and over; in some of them with another word each time.
TEXTS = {
    "words": "A dog sleeps in the garden. ",
    "one line of words": "the dog and ",
    "brackets": "[",
    "closed brackets": "[]",
    "braces": "{",
    "closed braces": "{}",
    "messages": "{n, plural, one {a} other ",
    "parentheses": "(",
    "links": "[a](",
    "tags": "<b>",
    "closed tags": "<b>a</b> ",
    "numbered tags": "<b1>a ",
    "emphasis": "**a ",
    "underscores": "_a",
    "stars": "*",
    "backquotes": "`a ",
    "bars": "| ",
    "cells": "a | ",
    "dashes": "a – ",
    "arrows": "a → ",
    "tabs": "a\t",
    "quotes": "“a. ",
    "stops": "a. ",
    "capitals": "STOP IT NOW. ",
    "numbers": "12,500 ",
    "digits": "7",
    "groups": "123 ",
    "addresses": "a.b/",
    "identifiers": "ab-1-",
    "snakes": "a_",
    "emoji": "😀 ",
    "joined emoji": "👩🏽\u200d",
    "foreign words": "東京 a ",
    "blank lines": "\n",
    "wide blanks": "\u3000",
    "invisible": "\u200b",
    "entities": "&amp;",
    "percents": "%d",
    "colons": ":a",
}
VARIED = {
    "varied sentences": "A {} sleeps in the garden. ",
    "varied lines": "The {}\n",
    "varied cells": "{}\t{}\n",
    "varied marks": "The **{}** sleeps. ",
}


def main() -> int:
    """Measure all texts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", type=int, default=1_000_000, metavar="N", help="of the larger")
    parser.add_argument("--only", choices=[*TEXTS, *VARIED], metavar="NAME", help="one text alone")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    folder = PRETRAINED / "en-de"
    pipeline = Pipeline(TextCodec.from_folder(folder, ("en", "de")), read_card(folder).usual_length)
    measure(pipeline, TEXTS["words"] * 100)  # what is loaded on first use
    rows = []
    for name, part in [*TEXTS.items(), *VARIED.items()]:
        if arguments.only in (None, name):
            count = arguments.bytes // len(fill(part, 1).encode())
            half, whole = (measure(pipeline, fill(part, n)) for n in (count // 2, count))
            size = count * len(fill(part, 1).encode()) / 1e6
            rows.append([name, count, *(f"{t:.3f}" for t in whole), f"{sum(whole) / size:.2f}"])
            rows[-1].append(f"{sum(whole) / sum(half):.1f}")
            print(*rows[-1], sep="\t", flush=True)
    with whole_file(arguments.csv) as path, open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["text", "count", "split_s", "write_s", "s_per_mb", "growth", "machine"])
        writer.writerows([*row, f"{platform.machine()} CPU, 1 thread"] for row in rows)
    return 0


def fill(part: str, count: int) -> str:
    """A part so many times, with words of six letters where it says so."""
    if part not in VARIED.values():
        return part * count
    words = ("".join(chr(97 + number // 26**i % 26) for i in range(6)) for number in range(count))
    return "".join(part.format(word, word[::-1]) for word in words)


def measure(pipeline: Pipeline, text: str) -> tuple[float, float]:
    """Processor seconds to split a text and read its parts, and to write them."""
    start = time.process_time()
    segments = pipeline.split(text, split_sentences=True)
    read = time.process_time()
    for segment in {id(segment): segment for segment in segments}.values():
        if segment.is_translated:
            said = segment.read.text
            shares = np.eye(len(said.split()))
            pipeline.write(segment, said, lambda shares=shares: shares)
    return read - start, time.process_time() - read


if __name__ == "__main__":
    sys.exit(main())
