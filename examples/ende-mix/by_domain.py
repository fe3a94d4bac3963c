"""BLEU and chrF of one or more systems on each domain of a test set, as a table.

    python examples/ende-mix/by_domain.py HYPOTHESES... --ref data-bin/ende-mix/raw/test2.de

The domains stand beside the references, a line for a line: test2.domain, as prepare.py writes it.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError


def main() -> int:
    """Score and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hypotheses", nargs="+", type=Path)
    parser.add_argument("--ref", required=True, type=Path, metavar="FILE")
    arguments = parser.parse_args()
    paths = [arguments.ref.with_suffix(".domain"), arguments.ref, *arguments.hypotheses]
    try:
        domains, references, *systems = (list(read_lines(path)) for path in paths)
        if not domains:
            raise UserError(f"{paths[0]}: no domain in it")
        for path, lines in zip(paths[1:], (references, *systems), strict=True):
            if len(lines) != len(domains):
                raise UserError(
                    f"{path} has {len(lines):,} lines and {paths[0]} has {len(domains):,}"
                )
    except UserError as error:
        print(f"by_domain.py: {error}", file=sys.stderr)
        return 2
    members = defaultdict(list)
    for i, domain in enumerate(domains):
        members[domain].append(i)
    members["all"] = list(range(len(domains)))
    print("| domain | sentences | " + " | ".join(f"{p}: BLEU | chrF" for p in paths[2:]) + " |")
    print("| --- " * (2 + 2 * len(systems)) + "|")
    metrics = BLEU(), CHRF()
    for domain, lines in members.items():
        cells = [domain, str(len(lines))]
        for system in systems:
            ours, theirs = [system[i] for i in lines], [references[i] for i in lines]
            cells += [f"{metric.corpus_score(ours, [theirs]).score:.1f}" for metric in metrics]
        print("| " + " | ".join(cells) + " |")
    print(*(f"{metric.get_signature()}" for metric in metrics), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
