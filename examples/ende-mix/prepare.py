"""Choose the sets of the mix and binarize them: train, valid, test (news) and test1 (Tatoeba).

    python examples/ende-mix/prepare.py --raw ende-mix --news newstest2014 --out data-bin/ende-mix

RAW holds train.en.xz, train.de.xz and train.domain.xz, where a line of the last names the source of
the pair of the same number. Held out of the mix are 1,000 pairs spread evenly over it, to validate,
and 1,000 short ones of Tatoeba, to test. No training pair shares a side with them. --pairs trains
on so many of the others, spread evenly too.
"""

import argparse
import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Choose, write raw text to a temporary folder, and prepare it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR")
    parser.add_argument("--news", type=Path, required=True, help="prefix of the test set's files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, metavar="N", help="default: all")
    parser.add_argument("--held-out", type=int, default=1000, metavar="N", help="of both kinds")
    parser.add_argument("--vocab-size", default="16000", help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        columns = [_read(arguments.raw / f"train.{part}.xz") for part in ("en", "de", "domain")]
    except (OSError, lzma.LZMAError) as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    if len({len(column) for column in columns}) > 1:
        print(f"prepare.py: {arguments.raw}: the three files differ in length", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        sets = split(list(zip(*columns, strict=True)), arguments.held_out, arguments.pairs)
        for name, pairs in sets.items():
            for side, lang in enumerate(("en", "de")):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                Path(folder, f"{name}.{lang}").write_text(text, encoding="utf-8")
        for lang in ("en", "de"):
            shutil.copy(f"{arguments.news}.{lang}", Path(folder, f"news.{lang}"))
        return subprocess.run(
            ["resmlp-mt", "prepare", "--source-lang", "en", "--target-lang", "de"]
            + ["--train", f"{folder}/train", "--valid", f"{folder}/valid"]
            + ["--test", f"{folder}/news,{folder}/tatoeba", "--out", str(arguments.out)]
            + ["--vocab-size", arguments.vocab_size, "--joined"]
        ).returncode


def split(
    rows: list[tuple[str, str, str]], held_out: int, pairs: int | None
) -> dict[str, list[tuple[str, str, str]]]:
    """Divide (source, target, domain) into train, valid and tatoeba.

    Args:
        rows: All pairs.
        held_out: How many each of the last two gets.
        pairs: How many shall be trained on; None for all that are left.
    """
    short = [row for row in rows if row[2].startswith("tatoeba") and len(row[0].split()) <= 10]
    sets = {"valid": _spread(rows, held_out), "tatoeba": _spread(short, held_out)}
    known = {side for part in sets.values() for row in part for side in row[:2]}
    train = [row for row in rows if known.isdisjoint(row[:2])]
    return {"train": _spread(train, pairs or len(train)), **sets}


def _spread(rows: list, count: int) -> list:
    """That many rows, evenly spaced; all where there are fewer."""
    if count >= len(rows):
        return rows
    return [rows[i * len(rows) // count] for i in range(count)]


def _read(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        return stream.read().removesuffix("\n").split("\n")


if __name__ == "__main__":
    sys.exit(main())
