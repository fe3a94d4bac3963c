"""Print the figures of a finished training as JSON, for scripts/append_row.py.

    python scripts/translation_figures.py RUN --hypotheses FILE --references FILE NAME=VALUE ...

RUN holds train.log, by fairseq-train, and command, by train.sh. The NAME=VALUE pairs are the row's
first columns.
"""

import argparse
import json
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from resmlp_mt.cli.curves import read_log
from resmlp_mt.data.text import read_lines


def main() -> None:
    """Collect the figures from the run's own files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of the training")
    parser.add_argument("columns", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--hypotheses", type=Path, required=True)
    parser.add_argument("--references", type=Path, required=True)
    arguments = parser.parse_args()

    hypotheses = list(read_lines(arguments.hypotheses))
    references = [list(read_lines(arguments.references))]
    bleu, chrf = BLEU(), CHRF()
    score = bleu.corpus_score(hypotheses, references)
    # As the published 41.0 of Transformer-Tiny: lowercased. Its tokenizer was Moses, not 13a.
    lowercased = BLEU(lowercase=True)
    updates, valid = read_log(arguments.run / "train.log", "nll_loss")[1][-1]
    figures = dict(column.split("=", 1) for column in arguments.columns) | {
        "parameters": None,  # from the log
        "updates": updates,
        "bleu": f"{score.score:.2f}",
        "chrf": f"{chrf.corpus_score(hypotheses, references).score:.2f}",
        "bleu_lowercase": f"{lowercased.corpus_score(hypotheses, references).score:.2f}",
        "brevity_penalty": f"{score.bp:.3f}",
        "valid_nll_base2": f"{valid:.3f}",
        "train_seconds": None,
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "commit": None,
        "date": None,
        "machine": None,
        "command": (arguments.run / "command").read_text("utf-8").strip(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
