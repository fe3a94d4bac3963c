r"""Put back-translated text, with a tag before each source, behind the bitext:

    python examples/backtranslation/mix.py --bitext RAW/train --translated OUT/sampled.en \
        --monolingual RAW/monolingual.de --out OUT/train

Writes OUT/train.en and OUT/train.de. What came out empty is left out. The tag tells a model of made
up sources from those of people; its vocabulary must have it (`--user-defined-symbols` of
`resmlp-mt prepare`).
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from resmlp_mt.data.reading import read_lines, read_pairs
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file

_LANGS = ("en", "de")


def main() -> int:
    """Write both sides."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bitext", required=True, metavar="PREFIX", help="of .en and .de")
    parser.add_argument("--translated", type=Path, required=True, help="English, by a model")
    parser.add_argument("--monolingual", type=Path, required=True, help="what it was made of")
    parser.add_argument("--out", required=True, metavar="PREFIX")
    parser.add_argument("--tag", default="<BT>", help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        counts = mix(arguments)
    except UserError as error:
        print(f"mix.py: {error}", file=sys.stderr)
        return 2
    print("{:,} pairs of the bitext, {:,} back-translated, {:,} left out as empty".format(*counts))
    return 0


def mix(arguments: argparse.Namespace) -> tuple[int, int, int]:
    """Write the pairs; returns how many there are of each kind, and how many were left out.

    Raises:
        UserError: If the translations are not those of the monolingual text, line by line.
    """
    sides = [list(read_lines(path)) for path in (arguments.translated, arguments.monolingual)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{arguments.translated} has {len(sides[0]):,} lines and {arguments.monolingual} "
            f"{len(sides[1]):,}: the one is not the translation of the other"
        )
    made = [pair for pair in zip(*sides, strict=True) if all(map(str.strip, pair))]
    with ExitStack() as stack:
        paths = [stack.enter_context(whole_file(Path(f"{arguments.out}.{x}"))) for x in _LANGS]
        outs = [stack.enter_context(open(path, "w", encoding="utf-8")) for path in paths]
        bitext = 0
        for source, target in read_pairs(arguments.bitext, *_LANGS):
            _write(outs, source, target)
            bitext += 1
        for source, target in made:
            _write(outs, f"{arguments.tag} {source}", target)
    return bitext, len(made), len(sides[0]) - len(made)


def _write(outs: list, source: str, target: str) -> None:
    outs[0].write(f"{source}\n")
    outs[1].write(f"{target}\n")


if __name__ == "__main__":
    sys.exit(main())
