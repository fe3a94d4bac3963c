"""SacreBLEU, chrF and TER of one or more hypothesis files, with their signatures.

resmlp-mt score --ref test.de ours.de theirs.de
"""

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("hypotheses", nargs="+", type=Path, metavar="HYPOTHESES")
    parser.add_argument(
        "--ref",
        action="append",
        required=True,
        type=Path,
        metavar="FILE",
        help="detokenized reference; may be repeated",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--tokenize", default="13a", help="SacreBLEU's tokenizer for BLEU (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Score and print."""
    from resmlp_mt.data.text import read_lines
    from resmlp_mt.errors import UserError

    texts = {path: list(read_lines(path)) for path in [*arguments.ref, *arguments.hypotheses]}
    expected = len(texts[arguments.ref[0]])
    for path, lines in texts.items():
        if not lines:
            raise UserError(f"{path}: empty file")
        if len(lines) != expected:
            raise UserError(
                f"{path} has {len(lines):,} lines and {arguments.ref[0]} has {expected:,}: "
                "a translation needs a line for a line"
            )
    metrics = _metrics(arguments.tokenize, arguments.lowercase)
    references = [texts[path] for path in arguments.ref]
    rows = []
    for path in arguments.hypotheses:
        scores = {name: m.corpus_score(texts[path], references) for name, m in metrics.items()}
        rows.append({"file": str(path)} | {name: round(s.score, 2) for name, s in scores.items()})
    # Known only after scoring: it counts the references.
    signatures = {name: str(metric.get_signature()) for name, metric in metrics.items()}
    if arguments.json:
        print(json.dumps([row | {"signatures": signatures} for row in rows], indent=1))
        return
    width = max(len(row["file"]) for row in rows)
    print(f"{'':{width}}" + "".join(f"{name:>8}" for name in metrics))
    for row in rows:
        print(f"{row['file']:{width}}" + "".join(f"{row[name]:8.2f}" for name in metrics))
    for name, signature in signatures.items():
        print(f"{name}: {signature}")


def _metrics(tokenize: str, lowercase: bool) -> dict:
    from sacrebleu.metrics import BLEU, CHRF, TER

    from resmlp_mt.errors import UserError

    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(
            f"--tokenize {tokenize}: SacreBLEU has {', '.join(sorted(BLEU.TOKENIZERS))}"
        )
    return {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrF": CHRF(lowercase=lowercase),
        "TER": TER(),  # ignores case by SacreBLEU's default
    }
