"""How `resmlp-mt translate` prints what was found for a line."""

import argparse
import json


def format_line(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    """What is printed for a line, with its line ends.

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
    texts = [h.text + _print_alignment(arguments, h) for h in hypotheses]
    if arguments.nbest > 1:
        rows = zip(hypotheses, texts, strict=True)
        return "".join(
            f"{number}\t{h.score:.4f}\t{line}\n"
            for h, text in rows
            for line in text.split("\n")  # of a block of code
        )
    return texts[0] + "\n"


def _align(arguments: argparse.Namespace, hypothesis) -> list[tuple[int, int]]:
    from resmlp_mt.inference.alignment import align_subwords, align_words

    align = align_words if arguments.print_alignment == "word" else align_subwords
    return align(hypothesis.attention)


def _print_alignment(arguments: argparse.Namespace, hypothesis) -> str:
    if not arguments.print_alignment:
        return ""
    return "\t" + " ".join(f"{s}-{t}" for s, t in _align(arguments, hypothesis))


def _describe_alignment(arguments: argparse.Namespace, hypothesis) -> dict:
    """What JSON says of it: the pairs, and the subwords if they are meant."""
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
