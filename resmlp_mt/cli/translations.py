"""The lines that `resmlp-mt translate` prints for a line."""

import argparse
import json


def format_line(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    """The output for a line of the source, with its line ends; of its hypotheses, best first."""
    kind = arguments.print_alignment
    pairs = [_align(kind, hypothesis) for hypothesis in hypotheses] if kind else []
    if arguments.json:
        entries = [{"text": h.text, "score": round(h.score, 4)} for h in hypotheses]
        for entry, found, hypothesis in zip(entries, pairs, hypotheses, strict=False):
            entry["alignment"] = found
            if kind == "subword":
                for side in ("source", "target"):
                    words = [w for a in hypothesis.attention for w in getattr(a, side)[:-1]]
                    entry[f"{side}_subwords"] = words
        said = {"source": source, "unknown": round(hypotheses[0].unknown, 4)}
        return json.dumps(said | {"translations": entries}, ensure_ascii=False) + "\n"
    rows = ""
    for i, hypothesis in enumerate(hypotheses):
        before = f"{number}\t{hypothesis.score:.4f}\t" if arguments.nbest > 1 else ""
        behind = "\t" + " ".join(f"{s}-{t}" for s, t in pairs[i]) if kind else ""
        for line in hypothesis.text.split("\n"):  # a block of code has several
            rows += f"{before}{line}{behind}\n"
    return rows


def _align(kind: str, hypothesis) -> list[tuple[int, int]]:
    from resmlp_mt.translating.alignment import align_subwords, align_words

    return (align_words if kind == "word" else align_subwords)(hypothesis.attention)
