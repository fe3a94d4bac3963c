"""Print the figures of a finished run as JSON, for scripts/append_row.py."""

import argparse
import json
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from resmlp_mt.cli.curves import read_log
from resmlp_mt.data.text import read_lines


def main() -> None:
    """Collect the figures from the run's own files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of train.sh and evaluate.sh")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--references", type=Path, required=True)
    arguments = parser.parse_args()

    hypotheses = list(read_lines(arguments.run / "hypotheses.de"))
    references = [list(read_lines(arguments.references))]
    bleu, chrf = BLEU(), CHRF()
    # As the published 41.0 of Transformer-Tiny: lowercased. Its tokenizer was Moses, not 13a.
    lowercased = BLEU(lowercase=True)
    updates, valid = read_log(arguments.run / "train.log", "nll_loss")[1][-1]
    figures = {
        "model": arguments.model,
        "seed": arguments.seed,
        "parameters": None,  # from the log
        "updates": updates,
        "bleu": f"{bleu.corpus_score(hypotheses, references).score:.2f}",
        "chrf": f"{chrf.corpus_score(hypotheses, references).score:.2f}",
        "bleu_lowercase": f"{lowercased.corpus_score(hypotheses, references).score:.2f}",
        "brevity_penalty": f"{bleu.corpus_score(hypotheses, references).bp:.3f}",
        "valid_nll_base2": f"{valid:.3f}",
        "train_seconds": None,
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "commit": None,
        "date": None,
        "machine": None,
        "command": f"examples/multi30k/train.sh {arguments.model} {arguments.seed} {updates}",
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
