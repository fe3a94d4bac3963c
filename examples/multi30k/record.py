"""Append what a finished run came to as a row of results.csv."""

import argparse
import csv
import datetime
import json
import os
import platform
import re
import subprocess
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
    parser.add_argument("--results", type=Path, required=True)
    arguments = parser.parse_args()

    hypotheses = list(read_lines(arguments.run / "hypotheses.de"))
    references = [list(read_lines(arguments.references))]
    bleu, chrf = BLEU(), CHRF()
    # As the published 41.0 of Transformer-Tiny: lowercased. Its tokenizer was Moses, not 13a.
    lowercased = BLEU(lowercase=True)
    log = (arguments.run / "train.log").read_text(encoding="utf-8")
    updates = max(point[0] for point in read_log(arguments.run / "train.log", "nll_loss")[1])
    row = {
        "model": arguments.model,
        "seed": arguments.seed,
        "parameters": int(
            re.search(r"num\. shared model params: ([\d,]+)", log)[1].replace(",", "")
        ),
        "updates": updates,
        "bleu": f"{bleu.corpus_score(hypotheses, references).score:.2f}",
        "chrf": f"{chrf.corpus_score(hypotheses, references).score:.2f}",
        "bleu_lowercase": f"{lowercased.corpus_score(hypotheses, references).score:.2f}",
        "brevity_penalty": f"{bleu.corpus_score(hypotheses, references).bp:.3f}",
        "valid_nll_base2": f"{read_log(arguments.run / 'train.log', 'nll_loss')[1][-1][1]:.3f}",
        "train_seconds": round(float(re.search(r"done training in ([\d.]+) seconds", log)[1])),
        "bleu_signature": bleu.get_signature(),
        "chrf_signature": chrf.get_signature(),
        "commit": os.environ.get("COMMIT") or _git("rev-parse", "--short", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()} CPU, {os.environ.get('OMP_NUM_THREADS', 'all')} thread",
        "command": f"examples/multi30k/train.sh {arguments.model} {arguments.seed} {updates}",
    }
    new = not arguments.results.exists()
    with open(arguments.results, "a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, row)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(json.dumps({k: str(v) for k, v in row.items()}, indent=1))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
