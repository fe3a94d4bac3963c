"""The bytes that fewer bits for the weights of an export save, and their cost in BLEU and chrF.

    python examples/benchmarks/weight_bits.py en-de --csv examples/benchmarks/weight_bits.csv \
        --test tatoeba test1.en test1.de

The model is exported in 8 bits as ever, and then with each of the --bits. --test may be repeated.
Without it only sizes are measured, of a model that may be untrained.
"""

import argparse
import tempfile
from pathlib import Path

from races.report import append_rows, describe_machine, describe_origin, print_table
from sacrebleu.metrics import BLEU, CHRF

from resmlp_mt.data.reading import read_lines
from resmlp_mt.export.writer import export_model
from resmlp_mt.translating.translator import Translator


def main() -> None:
    """Export, translate and score; print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a shipped model, folder, checkpoint")
    parser.add_argument("--name", help="of the model, for the column (default: MODEL)")
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 7, 6, 5, 4])
    parser.add_argument(
        "--test", nargs=3, action="append", default=[], metavar=("NAME", "SOURCE", "TARGET")
    )
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for bits in (None, *arguments.bits):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "export"
            export_model(arguments.model, folder, int8=True, weight_bits=bits)
            size = sum(path.stat().st_size for path in folder.iterdir())
            about = {"model": arguments.name or arguments.model}
            about |= {"weight_bits": bits or "", "megabytes": f"{size / 1e6:.1f}"}
            rows += [about | scores for scores in score(folder, arguments.test)]
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def score(folder: Path, tests: list[list[str]]) -> list[dict]:
    """BLEU and chrF of each test; without one a row without scores."""
    rows, translator = [], tests and Translator.from_pretrained(folder)
    for name, source, target in tests or [["", "", ""]]:
        row = {"set": name}
        row |= dict.fromkeys(("bleu", "bleu_signature", "chrf", "chrf_signature"), "")
        if name:
            sources, references = (list(read_lines(Path(path))) for path in (source, target))
            found = translator.translate(sources, split_sentences=False)
            for column, metric in (("bleu", BLEU()), ("chrf", CHRF())):
                row[column] = f"{metric.corpus_score(found, [references]).score:.2f}"
                row[f"{column}_signature"] = str(metric.get_signature())
        rows.append(row | describe_origin(describe_machine()))
    return rows


if __name__ == "__main__":
    main()
