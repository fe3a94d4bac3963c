"""Make texts with labels of the mix of examples/ende-mix: from which domain is a sentence?

    python examples/pnlp/prepare.py --raw ende-mix --out data-bin/domains

RAW holds train.en.xz and train.domain.xz, which names the source of each line. A domain is what
stands before the first hyphen. OUT gets what fairseq's task `sentence_prediction` reads: `input0`,
subwords, and `label`; and the text of each set in `raw`. The sets:

    train   up to 5,000 sentences of each domain, spread evenly over it
    valid   100 of each
    test    200 of each
    test1   the first five words of those

No sentence comes twice, whatever its case, blanks and punctuation. One that stands in two domains
is left out, since it has no right answer. Longer ones are cut after --words words.
"""

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from resmlp_mt.cli.flags import check_positive
from resmlp_mt.data.subwords import JOINED_NAME, train_subwords
from resmlp_mt.data.text import read_lines
from resmlp_mt.errors import UserError

HELD_OUT = {"valid": 100, "test": 200}
FIRST_WORDS = 5


def main() -> int:
    """Choose, write, and binarize."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lang", default="en", help="default: %(default)s")
    parser.add_argument(
        "--per-domain", type=int, default=5000, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--words", type=int, default=32, metavar="N", help="default: %(default)s")
    parser.add_argument("--vocab-size", type=int, default=8000, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        check_positive(arguments, "per_domain", "words", "vocab_size")
        texts, domains = (
            list(read_lines(arguments.raw / f"train.{part}.xz"))
            for part in (arguments.lang, "domain")
        )
        if len(texts) != len(domains):
            raise UserError(f"{arguments.raw}: the two files differ in length")
        sets = split(zip(texts, domains, strict=True), arguments.per_domain)
        model = train_subwords((text for text, _ in sets["train"]), arguments.vocab_size, "bpe")
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    raw = arguments.out / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    (arguments.out / JOINED_NAME).write_bytes(model)
    sets["test1"] = sets["test"]
    for name, rows in sets.items():
        words = FIRST_WORDS if name == "test1" else arguments.words
        _write(raw / name, rows, model, words)
    for column, suffix in (("input0", "subwords"), ("label", "label")):
        preprocess = ["fairseq-preprocess", "--only-source", "--padding-factor", "1"]
        preprocess += ["--destdir", str(arguments.out / column)]
        for name, prefixes in (("train", "train"), ("valid", "valid"), ("test", "test,test1")):
            files = ",".join(f"{raw / prefix}.{suffix}" for prefix in prefixes.split(","))
            preprocess += [f"--{name}pref", files]
        if status := subprocess.run(preprocess).returncode:
            return status
    return 0


def split(
    rows: Iterable[tuple[str, str]], per_domain: int, held_out: dict[str, int] | None = None
) -> dict[str, list[tuple[str, str]]]:
    """Divide (text, source) into train and what is held out, each with (text, domain).

    Args:
        rows: All texts.
        per_domain: How many of a domain are trained on, at most.
        held_out: How many of a domain each other set gets; HELD_OUT unless given.
    """
    found = defaultdict(dict)
    for text, source in rows:
        form = "".join(filter(str.isalnum, text.casefold()))
        found[form].setdefault(source.partition("-")[0], text)
    by_domain = defaultdict(list)
    for form, texts in found.items():
        if form and len(texts) == 1:
            ((domain, text),) = texts.items()
            by_domain[domain].append((text, domain))
    sets = defaultdict(list)
    for domain in sorted(by_domain):
        left = by_domain[domain]
        for name, count in (held_out or HELD_OUT).items():
            chosen = _spread(left, count)
            sets[name] += chosen
            left = [row for row in left if row not in set(chosen)]
        sets["train"] += _spread(left, per_domain)
    return dict(sets)


def _spread(rows: list, count: int) -> list:
    """That many rows, evenly spaced; all where there are fewer."""
    if count >= len(rows):
        return rows
    return [rows[i * len(rows) // count] for i in range(count)]


def _write(prefix: Path, rows: list[tuple[str, str]], model: bytes, words: int) -> None:
    """PREFIX.subwords and PREFIX.label, a line a text, of which no more than so many words."""
    import sentencepiece

    subwords = sentencepiece.SentencePieceProcessor(model_proto=model)
    lines = {"subwords": [], "label": []}
    for text, domain in rows:
        lines["subwords"].append(" ".join(_cut(subwords.encode(text, out_type=str), words)))
        lines["label"].append(domain)
    for suffix, column in lines.items():
        text = "".join(f"{line}\n" for line in column)
        prefix.with_suffix(f".{suffix}").write_text(text, encoding="utf-8")


def _cut(pieces: list[str], words: int) -> list[str]:
    """The pieces of the first words."""
    starts = [i for i, piece in enumerate(pieces) if piece.startswith("▁")]
    return pieces[: starts[words]] if len(starts) > words else pieces


if __name__ == "__main__":
    sys.exit(main())
