"""SacreBLEU, chrF and TER of one or more hypothesis files, with their signatures.

--paired-ar and --paired-bs tell whether systems differ from the first one, or only happen to on
these sentences. Without a reference a model can judge: it writes a number for each line, the
negative log-likelihood of ours.de given test.en, in nats. docs/evaluate.md says how to read both.

  resmlp-mt score --ref test.de ours.de theirs.de
  resmlp-mt translate --model my-model --input test.en | resmlp-mt score --ref test.de -
  resmlp-mt score ours.de --source test.en --model en-de
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from resmlp_mt.cli import flags
from resmlp_mt.cli.bleu import add_tokenize, are_unspaced, make_bleu
from resmlp_mt.cli.tables import align
from resmlp_mt.errors import UserError

# SacreBLEU's tests, and how often each draws unless it is told.
_DRAWS = {"ar": 10_000, "bs": 1000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("hypotheses", nargs="+", type=Path, metavar="HYPOTHESES", help="- is standard input")
    several = dict(action="append", type=Path, metavar="FILE")
    add("--ref", **several, help="detokenized reference; may be repeated")
    add("--lowercase", action="store_true", help="ignore case")
    add_tokenize(parser)
    tests, some = parser.add_mutually_exclusive_group(), dict(type=flags.positive, metavar="N")
    for test, name in (("ar", "approximate randomization"), ("bs", "bootstrap resampling")):
        said = f"test differences by paired {name}"
        tests.add_argument(f"--paired-{test}", action="store_true", help=said)
        add(f"--paired-{test}-n", **some, help=f"draws of it (default: {_DRAWS[test]})")
    add("--seed", **some, help="of draws (default: $SACREBLEU_SEED, or 12345)")
    add("--json", action="store_true", help="print a JSON list instead of a table")
    judged = parser.add_argument_group("negative log-likelihood by a model, in place of --ref")
    add, few = judged.add_argument, dict(type=flags.thread_count, metavar="N")
    said = "write how unlikely this model finds each line, in nats; inf where a side is too long"
    add("--model", metavar="NAME|DIR|FILE", help=said)
    add("--source", type=Path, metavar="FILE", help="what the lines translate")
    add("--per-subword", action="store_true", help="the mean over the subwords of a line")
    add("--threads", **few, help="threads on a CPU (default: one a core)")
    flags.add_device(judged)
    flags.add_user_dir(judged)


def run(arguments: argparse.Namespace) -> None:
    """Score and print."""
    if arguments.model:
        return _judge(arguments)
    given = "which is not given"
    flags.refuse_given(arguments, ("source", "per_subword", "threads"), f"is for --model, {given}")
    if not arguments.ref:
        raise UserError("--ref is missing; or let a model judge, with --model and --source")
    test = next((test for test in _DRAWS if getattr(arguments, f"paired_{test}")), None)
    for other in {*_DRAWS} - {test}:
        flags.refuse_given(arguments, [f"paired_{other}_n"], f"is for --paired-{other}, {given}")
    if test is None:
        flags.refuse_given(arguments, ["seed"], f"is for --paired-ar or --paired-bs, {given}")
    elif len(arguments.hypotheses) < 2:
        raise UserError(f"--paired-{test} compares files: name two or more")
    texts = _read_all([*arguments.ref, *arguments.hypotheses])
    references = _leave_out_missing([texts[path] for path in arguments.ref])
    if test and len(references[0]) < 2:
        raise UserError(f"--paired-{test} draws lines anew, and there is one: it says nothing")
    lines = [line for path in arguments.ref for line in texts[path]]
    metrics = _metrics(arguments.tokenize, arguments.lowercase, lines)
    rows = []
    for path in arguments.hypotheses:
        scores = {name: m.corpus_score(texts[path], references) for name, m in metrics.items()}
        rows.append({"file": str(path)} | {name: round(s.score, 2) for name, s in scores.items()})
        if not are_unspaced(lines):  # else the tokenizer is to blame
            _explain_zero(path, scores["BLEU"])
    # Known only after scoring: it counts the references.
    common = {"signatures": {name: str(m.get_signature()) for name, m in metrics.items()}}
    if test:
        systems = [(str(path), texts[path]) for path in arguments.hypotheses]
        if arguments.seed is not None:
            os.environ["SACREBLEU_SEED"] = str(arguments.seed)  # the only way to tell it
        draws = getattr(arguments, f"paired_{test}_n") or _DRAWS[test]
        common["signatures"], tested = _test_pairs(systems, references, metrics, test, draws)
        rows = [row | {f"paired_{test}": one} for row, one in zip(rows, tested, strict=True)]
    if len(references) > 1:
        counts = (column.count(None) for column in references)
        common["missing_references"] = dict(zip(map(str, arguments.ref), counts, strict=True))
    if arguments.json:
        print(json.dumps([row | common for row in rows], indent=1))
        return
    table = [["", *metrics], *([row["file"], *(_cell(row, m) for m in metrics)] for row in rows)]
    print("\n".join(align(table)))
    for name, signature in common["signatures"].items():
        print(f"{name}: {signature}")
    for name, missing in common.get("missing_references", {}).items():
        if missing:
            print(f"{name}: {missing:,} of {len(lines) // len(references):,} lines are missing")


def _read_all(paths: list[Path]) -> dict[Path, list[str]]:
    """The lines of each file: as many of all, and some."""
    texts = {}
    if paths.count(Path("-")) > 1:
        raise UserError("-: standard input can be read once; name files for the others")
    for path in paths:
        texts[path] = list(_read(path))
    expected = len(texts[paths[0]])
    for path, lines in texts.items():
        if not lines:
            raise UserError(f"{path}: empty file")
        if len(lines) != expected:
            raise UserError(f"{path} has {len(lines):,} lines and {paths[0]} has {expected:,}")
    return texts


def _judge(arguments: argparse.Namespace) -> None:
    """Write how unlikely a model finds each line."""
    from resmlp_mt.data.reading import pair_lines
    from resmlp_mt.translating.likelihood import score_pairs
    from resmlp_mt.translating.translator import Translator

    names = ("ref", "paired_ar", "paired_bs", "seed", "json", "lowercase")
    flags.refuse_given(arguments, names, "is for references: leave it out, or --model")
    if not arguments.source or len(arguments.hypotheses) != 1:
        raise UserError("--model judges one file: name it, and what it translates with --source")
    (path,) = arguments.hypotheses
    if str(path) == str(arguments.source) == "-":
        raise UserError("-: standard input can be read once; name a file for the other")
    flags.import_user_dir(arguments)
    translator = Translator.from_pretrained(arguments.model, arguments.device, arguments.threads)
    paths = arguments.source, path
    pairs = pair_lines(*map(_read, paths), paths)
    for score in score_pairs(translator, pairs, arguments.per_subword):
        print(f"{score:.4f}")


def _read(path: Path) -> Iterator[str]:
    from resmlp_mt.data.reading import decode_lines, read_lines

    if str(path) == "-":
        return decode_lines(sys.stdin.buffer, "standard input")
    return read_lines(path)


def _leave_out_missing(references: list[list[str]]) -> list[list[str | None]]:
    """Several references, with None for a blank line where another reference has the sentence."""
    if len(references) == 1:
        return references
    rows = [
        [line if line.strip() else None for line in row] if any(map(str.strip, row)) else row
        for row in zip(*references, strict=True)
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def _explain_zero(path: Path, bleu) -> None:
    """Note where BLEU is 0 since all lines are shorter than the sequences that it counts."""
    if not bleu.score and not bleu.totals[-1] and bleu.counts[0]:
        warnings.warn(
            f"{path}: BLEU is 0.00, since it counts sequences of {len(bleu.totals)} tokens, and "
            f"there is no line of {len(bleu.totals)} tokens; chrF fits short lines too",
            stacklevel=2,
        )


def _cell(row: dict, metric: str) -> str:
    score = f"{row[metric]:.2f}"
    test = (row.get("paired_ar") or row.get("paired_bs") or {}).get(metric, {})
    if test.get("ci") is not None:
        score += f" ± {test['ci']:.2f}"
    return score if test.get("p_value") is None else f"{score}, p {test['p_value']:.3f}"


def _test_pairs(
    systems: list[tuple[str, list[str]]],
    references: list[list[str | None]],
    metrics: dict,
    kind: str,
    draws: int,
) -> tuple[dict[str, str], list[dict[str, dict]]]:
    """Signatures by metric; and by system and metric p, and the bootstrap's mean and interval."""
    from sacrebleu.significance import PairedTest

    seed = os.environ.get("SACREBLEU_SEED", "none")
    if seed.lower() != "none" and not (seed.isdecimal() and int(seed)):
        raise UserError(f"SACREBLEU_SEED={seed} in the environment: take a number, 1 or more")
    signatures, results = PairedTest(systems, metrics, references, kind, draws)()
    differing = [sum(map(str.__ne__, lines, systems[0][1])) for _, lines in systems]
    rows = [{} for _ in systems]
    # SacreBLEU has names of its own for the metrics, in the same order.
    for name, key in zip(metrics, signatures, strict=True):
        for row, result, differ in zip(rows, results[key], differing, strict=True):
            p = result.p_value
            # SacreBLEU counts draws that differ by more. Where few lines differ, none does.
            if p is not None and result.score == results[key][0].score:
                p = 1.0
            elif p is not None and kind == "ar":
                p = max(p, 2.0 ** (1 - differ))  # two of all ways to exchange these lines
            row[name] = {"p_value": p}
            if kind == "bs":
                row[name] |= {"mean": float(result.mean), "ci": float(result.ci)}
    return dict(zip(metrics, map(str, signatures.values()), strict=True)), rows


def _metrics(tokenize: str, lowercase: bool, references: list[str]) -> dict:
    from sacrebleu.metrics import CHRF, TER

    unspaced = are_unspaced(references)
    return {
        "BLEU": make_bleu(tokenize, references, lowercase),
        "chrF": CHRF(lowercase=lowercase),
        # Ignores case by SacreBLEU's default. It splits Chinese characters only if asked for both.
        "TER": TER(normalized=unspaced, asian_support=unspaced),
    }
