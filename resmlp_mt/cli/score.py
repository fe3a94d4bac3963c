"""SacreBLEU, chrF and TER of one or more hypothesis files, with their signatures.

resmlp-mt score --ref test.de ours.de theirs.de
resmlp-mt translate --model my-model --input test.en | resmlp-mt score --ref test.de -

--paired-bs tells whether systems differ, or only happen to on these sentences. It adds the 95%
interval of each score and, for each file but the first, p: how often chance alone would make so
large a difference from the first file.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from resmlp_mt.cli.bleu import add_tokenize, are_unspaced, make_bleu
from resmlp_mt.cli.flags import check_positive
from resmlp_mt.errors import UserError, name_flag

_RESAMPLES = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "hypotheses", nargs="+", type=Path, metavar="HYPOTHESES", help="- is standard input"
    )
    parser.add_argument(
        "--ref",
        action="append",
        required=True,
        type=Path,
        metavar="FILE",
        help="detokenized reference; may be repeated",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    add_tokenize(parser)
    parser.add_argument(
        "--paired-bs",
        action="store_true",
        help="test the difference from the first file, by paired bootstrap resampling",
    )
    parser.add_argument(
        "--paired-bs-n",
        type=int,
        metavar="N",
        help=f"resamples (default: {_RESAMPLES})",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of the resamples (default: SACREBLEU_SEED in the environment, or 12345)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Score and print."""
    check_positive(arguments, "paired_bs_n", "seed")  # with 0 SacreBLEU draws other ones each time
    for name in ("paired_bs_n", "seed"):
        if getattr(arguments, name) is not None and not arguments.paired_bs:
            raise UserError(f"{name_flag(name)} is for --paired-bs, which is not given")
    if arguments.paired_bs and len(arguments.hypotheses) < 2:
        raise UserError("--paired-bs compares files: name two or more")
    paths = [*arguments.ref, *arguments.hypotheses]
    if paths.count(Path("-")) > 1:
        raise UserError("-: standard input can be read once; name files for the others")
    texts = {path: _read(path) for path in paths}
    expected = len(texts[arguments.ref[0]])
    for path, lines in texts.items():
        if not lines:
            raise UserError(f"{path}: empty file")
        if len(lines) != expected:
            raise UserError(
                f"{path} has {len(lines):,} lines and {arguments.ref[0]} has {expected:,}: "
                "a translation needs a line for a line"
            )
    if arguments.paired_bs and expected < 2:
        raise UserError("--paired-bs draws lines anew, and there is one: it says nothing")
    references = [texts[path] for path in arguments.ref]
    metrics = _metrics(arguments.tokenize, arguments.lowercase, sum(references, []))
    rows = []
    for path in arguments.hypotheses:
        scores = {name: m.corpus_score(texts[path], references) for name, m in metrics.items()}
        rows.append({"file": str(path)} | {name: round(s.score, 2) for name, s in scores.items()})
    # Known only after scoring: it counts the references.
    signatures = {name: str(metric.get_signature()) for name, metric in metrics.items()}
    if arguments.paired_bs:
        systems = [(str(path), texts[path]) for path in arguments.hypotheses]
        signatures, tests = _test_pairs(systems, references, metrics, arguments)
        rows = [row | {"paired_bs": test} for row, test in zip(rows, tests, strict=True)]
    if arguments.json:
        print(json.dumps([row | {"signatures": signatures} for row in rows], indent=1))
        return
    table = [["", *metrics], *([row["file"], *(_cell(row, m) for m in metrics)] for row in rows)]
    first, *others = (max(map(len, column)) for column in zip(*table, strict=True))
    for file, *cells in table:
        padded = (f"{cell:>{max(width + 2, 8)}}" for cell, width in zip(cells, others, strict=True))
        print(f"{file:{first}}" + "".join(padded))
    for name, signature in signatures.items():
        print(f"{name}: {signature}")


def _read(path: Path) -> list[str]:
    from resmlp_mt.data.reading import decode_lines, read_lines

    if str(path) == "-":
        return list(decode_lines(sys.stdin.buffer, "standard input"))
    return list(read_lines(path))


def _cell(row: dict, metric: str) -> str:
    score = f"{row[metric]:.2f}"
    if "paired_bs" not in row:
        return score
    test = row["paired_bs"][metric]
    p = "" if test["p_value"] is None else f", p {test['p_value']:.3f}"
    return f"{score} ± {test['ci']:.2f}{p}"


def _test_pairs(
    systems: list[tuple[str, list[str]]],
    references: list[list[str]],
    metrics: dict,
    arguments: argparse.Namespace,
) -> tuple[dict[str, str], list[dict[str, dict]]]:
    """Signatures by metric; and by system and metric the mean, its interval and p."""
    from sacrebleu.significance import PairedTest

    if arguments.seed is not None:
        os.environ["SACREBLEU_SEED"] = str(arguments.seed)  # the only way to tell it
    seed = os.environ.get("SACREBLEU_SEED", "none")
    if not seed.isdecimal() and seed.lower() != "none":
        raise UserError(f"SACREBLEU_SEED={seed} in the environment: no number")
    resamples = arguments.paired_bs_n or _RESAMPLES
    test = PairedTest(systems, metrics, references, test_type="bs", n_samples=resamples)
    signatures, results = test()
    rows = [{} for _ in systems]
    # SacreBLEU has names of its own for the metrics, in the same order.
    for name, key in zip(metrics, signatures, strict=True):
        for row, result in zip(rows, results[key], strict=True):
            p = result.p_value
            if p is not None and result.score == results[key][0].score:
                p = 1.0  # where no resample differs SacreBLEU has the smallest p there is
            row[name] = {"mean": float(result.mean), "ci": float(result.ci), "p_value": p}
    named = {
        name: str(signature) for name, signature in zip(metrics, signatures.values(), strict=True)
    }
    return named, rows


def _metrics(tokenize: str, lowercase: bool, references: list[str]) -> dict:
    from sacrebleu.metrics import CHRF, TER

    unspaced = are_unspaced(references)
    return {
        "BLEU": make_bleu(tokenize, references, lowercase),
        "chrF": CHRF(lowercase=lowercase),
        # Ignores case by SacreBLEU's default. It splits Chinese characters only if asked for both.
        "TER": TER(normalized=unspaced, asian_support=unspaced),
    }
