"""Read what fairseq-generate wrote: show some translations, or write all of them in order.

python scripts/read_generate.py generate.txt --examples 10
python scripts/read_generate.py generate.txt --hypotheses hyp.txt --references ref.txt
"""

import argparse
import re
from pathlib import Path

from resmlp_mt.data.reading import read_lines
from resmlp_mt.files.output import whole_file


def main() -> None:
    """Parse the command line, read, show or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="output of fairseq-generate")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="translations to show")
    parser.add_argument("--hypotheses", type=Path, metavar="FILE", help="write the translations")
    parser.add_argument("--references", type=Path, metavar="FILE", help="write the references")
    arguments = parser.parse_args()
    # S-3 source, T-3 reference, D-3 detokenized hypothesis, its score before it.
    sides: dict[str, dict[int, str]] = {"S": {}, "T": {}, "D": {}}
    for line in read_lines(arguments.output):
        if match := re.match(r"([STD])-(\d+)\t(.*)", line):
            kind, number, text = match.groups()
            sides[kind].setdefault(int(number), text.split("\t")[-1])
    for kind, path in (("D", arguments.hypotheses), ("T", arguments.references)):
        if path:
            with whole_file(path) as out:
                lines = (text for _, text in sorted(sides[kind].items()))
                out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for number in sorted(sides["S"])[: arguments.examples]:
        for label, kind in (("source", "S"), ("reference", "T"), ("translation", "D")):
            print(f"{label:>12}  {sides[kind].get(number, '')}")
        print()


if __name__ == "__main__":
    main()
