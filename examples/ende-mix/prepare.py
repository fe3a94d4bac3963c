"""Choose the sets of the mix and binarize them: train, valid, test (news) and test1 (Tatoeba).

    python examples/ende-mix/prepare.py --raw ende-mix --news newstest2014 --out data-bin/ende-mix

RAW holds train.en.xz, train.de.xz and train.domain.xz, where a line of the last names the source of
the pair of the same number. Held out of the mix are 1,000 pairs spread evenly over it, to validate,
and 1,000 short ones of Tatoeba, to test. No training pair shares a side with them. --pairs trains
on so many of the others, spread evenly too.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from resmlp_mt.cli.flags import check_positive
from resmlp_mt.data.text import find_side, read_lines
from resmlp_mt.errors import UserError


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
        check_positive(arguments, "held_out", *(["pairs"] if arguments.pairs is not None else []))
        for lang in ("en", "de"):
            find_side(str(arguments.news), lang)
        columns = [
            list(read_lines(arguments.raw / f"train.{part}.xz")) for part in ("en", "de", "domain")
        ]
        if len({len(column) for column in columns}) > 1:
            raise UserError(f"{arguments.raw}: the three files differ in length")
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    sets = split(list(zip(*columns, strict=True)), arguments.held_out, arguments.pairs)
    with tempfile.TemporaryDirectory() as folder:
        for name, pairs in sets.items():
            for side, lang in enumerate(("en", "de")):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                Path(folder, f"{name}.{lang}").write_text(text, encoding="utf-8")
        return subprocess.run(
            ["resmlp-mt", "prepare", "--source-lang", "en", "--target-lang", "de"]
            + ["--train", f"{folder}/train", "--valid", f"{folder}/valid"]
            + ["--test", f"{arguments.news},{folder}/tatoeba", "--out", str(arguments.out)]
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
    valid = _spread(rows, held_out)
    rest = _leave_out(valid, rows)
    short = [row for row in rest if row[2].startswith("tatoeba") and len(row[0].split()) <= 10]
    tatoeba = _spread(short, held_out)
    train = _leave_out(tatoeba, rest)
    return {"train": _spread(train, pairs or len(train)), "valid": valid, "tatoeba": tatoeba}


def _leave_out(known: list[tuple], rows: list[tuple]) -> list[tuple]:
    """The rows that share no side with those."""
    sides = {side for row in known for side in row[:2]}
    return [row for row in rows if sides.isdisjoint(row[:2])]


def _spread(rows: list, count: int) -> list:
    """That many rows, evenly spaced; all where there are fewer."""
    if count >= len(rows):
        return rows
    return [rows[i * len(rows) // count] for i in range(count)]


if __name__ == "__main__":
    sys.exit(main())
