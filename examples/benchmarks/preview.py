"""The cost in BLEU and chrF of a look at few symbols: by a preview, or by a shortlist.

    python examples/benchmarks/preview.py en-de --csv examples/benchmarks/preview.csv \
        --text train.en train.de --shortlist-best 50 --test tatoeba test1.en test1.de

The model is exported in 8 bits and in full, each with a preview and without, and in 8 bits with a
shortlist of each length. --test may be repeated.
"""

import argparse
import tempfile
from pathlib import Path

from races.report import append_rows, print_table
from weight_bits import score

from resmlp_mt.export.parallel_text import ParallelText
from resmlp_mt.export.shortlist import ShortlistText
from resmlp_mt.export.writer import export_model


def main() -> None:
    """Export, translate and score; print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a shipped model, folder, checkpoint")
    parser.add_argument("--name", help="of the model, for the column (default: MODEL)")
    parser.add_argument(
        "--text",
        nargs=2,
        type=Path,
        required=True,
        metavar=("SOURCE", "TARGET"),
        help="what previews and shortlists are learned from",
    )
    parser.add_argument("--shortlist-best", type=int, nargs="*", default=[], metavar="N")
    parser.add_argument(
        "--test", nargs=3, action="append", required=True, metavar=("NAME", "SOURCE", "TARGET")
    )
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    text = ParallelText(*arguments.text)
    cases = [(kind, preview, None) for kind in ("float32", "int8") for preview in (None, text)]
    cases += [("int8", None, best) for best in arguments.shortlist_best]
    rows = []
    for kind, preview, best in cases:
        shortlist = None if best is None else ShortlistText(text, best)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "export"
            export_model(arguments.model, folder, kind == "int8", shortlist, preview=preview)
            about = {"model": arguments.name or arguments.model, "type": kind}
            about |= {
                "preview": "yes" if preview else "no",
                "shortlist": "no" if best is None else best,
            }
            rows += [about | scores for scores in score(folder, arguments.test)]
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


if __name__ == "__main__":
    main()
