"""The report of `prepare` on the text that it made ready."""

from dataclasses import dataclass, field
from pathlib import Path

from resmlp_mt.data.card import FEW

_MUCH = 0.01  # the share of rewritten lines that is worth a word


@dataclass
class SplitReport:
    """The figures of one split.

    Lengths are in subwords, without the end-of-sentence symbol. `several_sentences` is the share of
    source lines that hold several, `rewritten` that of target lines that `count_rewritten` counts.
    They are None where nobody looked: in all splits but train.
    """

    prefix: str
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    mean_length: dict[str, float] = field(default_factory=dict)
    max_length: dict[str, int] = field(default_factory=dict)
    unknown_rate: dict[str, float] = field(default_factory=dict)
    several_sentences: float | None = None
    rewritten: float | None = None


def format_report(reports: dict[str, SplitReport]) -> str:
    """The reports as a table to read."""
    lines = []
    for split, report in reports.items():
        lines.append(f"{split}: {report.kept:,} pairs from {report.prefix}")
        first = next(s for s, r in reports.items() if Path(r.prefix) == Path(report.prefix))
        if first != split:
            lines.append(f"  the same text as {first}: it will not tell how well others are done")
        for reason, count in report.dropped.items():
            lines.append(f"  dropped {count:,}: {reason}")
        for lang in report.mean_length:
            lines.append(
                f"  {lang}: {report.mean_length[lang]:.1f} subwords a sentence, longest "
                f"{report.max_length[lang]}, unknown {report.unknown_rate[lang]:.3%}"
            )
        if (report.rewritten or 0) >= _MUCH:
            lines.append(
                f"  SentencePiece rewrites {report.rewritten:.0%} of the target lines, and "
                "translations are written so too; see --normalization-rule-name"
            )
        if (report.several_sentences or 0) > FEW:
            lines.append(
                f"  {report.several_sentences:.0%} of the source lines hold several sentences, so "
                "translate will not split lines, unless --split-sentences is given"
            )
    return "\n".join(lines)
