"""The lines that `resmlp-mt translate` prints for a line."""

import argparse
import json


def format_line(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    """The output for a line, with its line ends.

    Args:
        arguments: Of the command.
        number: Of the line.
        source: Its text. A block of code has several lines.
        hypotheses: Its translations, the best first.
    """
    if arguments.json:
        translations = [
            {"text": h.text, "score": round(h.score, 4)} | _describe_alignment(arguments, h)
            for h in hypotheses
        ]
        unknown = round(hypotheses[0].unknown, 4)
        entry = {"source": source, "unknown": unknown, "translations": translations}
        return json.dumps(entry, ensure_ascii=False) + "\n"
    rows = ""
    for hypothesis in hypotheses:
        before = f"{number}\t{hypothesis.score:.4f}\t" if arguments.nbest > 1 else ""
        behind = _print_alignment(arguments, hypothesis)
        for line in hypothesis.text.split("\n"):  # a block of code has several
            rows += f"{before}{line}{behind}\n"
    return rows


def _align(arguments: argparse.Namespace, hypothesis) -> list[tuple[int, int]]:
    from resmlp_mt.translating.alignment import align_subwords, align_words

    align = align_words if arguments.print_alignment == "word" else align_subwords
    return align(hypothesis.attention)


def _print_alignment(arguments: argparse.Namespace, hypothesis) -> str:
    if not arguments.print_alignment:
        return ""
    return "\t" + " ".join(f"{s}-{t}" for s, t in _align(arguments, hypothesis))


def _describe_alignment(arguments: argparse.Namespace, hypothesis) -> dict:
    """The pairs for JSON, and the subwords if they are meant."""
    if not arguments.print_alignment:
        return {}
    pairs = {"alignment": _align(arguments, hypothesis)}
    if arguments.print_alignment == "word":
        return pairs
    sides = ("source", "target")
    return pairs | {
        f"{side}_subwords": [w for a in hypothesis.attention for w in getattr(a, side)[:-1]]
        for side in sides
    }
