"""Make texts with labels of the mix of examples/ende-mix: from which domain is a sentence?

    python examples/pnlp/prepare.py --raw ende-mix --out data-bin/domains

RAW holds train.en.xz and train.domain.xz, which names the source of each line. A domain is what
stands before the first hyphen. OUT gets what fairseq's task `sentence_prediction` reads, the
subwords of `input0` and the `label`; their text in `raw`; and the SentencePiece model. The sets:

    train   up to 5,000 sentences of each domain, spread evenly over it
    valid   100 of each
    test    200 of each
    test1   the first five words of those

No sentence comes twice, whatever its case, blanks and punctuation. One that stands in two domains
is left out, since it has no right answer. Longer ones are cut after --words words.
"""

import argparse
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from resmlp_mt.cli.flags import positive
from resmlp_mt.data.binarize import write_dictionaries
from resmlp_mt.data.reading import read_lines
from resmlp_mt.data.subwords import JOINED_NAME, train_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder

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
        "--per-domain", type=positive, default=5000, metavar="N", help="default: %(default)s"
    )
    parser.add_argument(
        "--words", type=positive, default=32, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--vocab-size", type=positive, default=8000, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        texts, domains = (
            list(read_lines(arguments.raw / f"train.{part}.xz"))
            for part in (arguments.lang, "domain")
        )
        if len(texts) != len(domains):
            raise UserError(f"{arguments.raw}: the two files differ in length")
        sets = split(zip(texts, domains, strict=True), arguments.per_domain)
        model = train_subwords((text for text, _ in sets["train"]), arguments.vocab_size, "bpe")
        with whole_folder(arguments.out, JOINED_NAME, "raw", "label", "input0") as folder:
            (folder / JOINED_NAME).write_bytes(model)
            write(folder, sets, SentencePieceProcessor(model_proto=model), arguments.words)
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
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
            taken = set(chosen)
            left = [row for row in left if row not in taken]
        sets["train"] += _spread(left, per_domain)
    return dict(sets)


def _spread(rows: list, count: int) -> list:
    """That many rows, evenly spaced; all where there are fewer."""
    if count >= len(rows):
        return rows
    return [rows[i * len(rows) // count] for i in range(count)]


def write(
    folder: Path,
    sets: dict[str, list[tuple[str, str]]],
    subwords: SentencePieceProcessor,
    words: int,
) -> None:
    """Write the sets of `split`, and test1, as text and as fairseq reads them.

    Args:
        folder: Where to.
        sets: Texts and their domains.
        subwords: Cuts the texts.
        words: How many of a text are kept.
    """
    raw, seen = folder / "raw", Counter()
    raw.mkdir()
    for name, rows in (sets | {"test1": sets["test"]}).items():
        kept = min(words, FIRST_WORDS) if name == "test1" else words
        texts = [_cut(subwords.encode(text, out_type=str), kept) for text, _ in rows]
        for suffix, lines in (("subwords", map(" ".join, texts)), ("label", (d for _, d in rows))):
            (raw / f"{name}.{suffix}").write_text("".join(f"{x}\n" for x in lines), "utf-8")
        if name == "train":
            seen.update(piece for text in texts for piece in text)
    # With all subwords: one that no training text has alone is hashed like any other.
    dictionary, _ = write_dictionaries([subwords] * 2, [seen] * 2, ("subwords",) * 2, folder)
    _binarize(raw, "subwords", folder / "input0", "--srcdict", str(dictionary))
    dictionary.unlink()
    _binarize(raw, "label", folder / "label")


def _binarize(raw: Path, suffix: str, folder: Path, *flags: str) -> None:
    """Write what fairseq-preprocess makes of train, valid, test and test1."""
    from fairseq import options
    from fairseq_cli import preprocess

    flags = ["--only-source", "--padding-factor", "1", "--destdir", str(folder), *flags]
    for name, sets in (("train", "train"), ("valid", "valid"), ("test", "test test1")):
        flags += [f"--{name}pref", ",".join(f"{raw / one}.{suffix}" for one in sets.split())]
    logging.getLogger("fairseq_cli.preprocess").setLevel(logging.WARNING)
    preprocess.main(options.get_preprocessing_parser().parse_args(flags))
    (folder / "preprocess.log").unlink()


def _cut(pieces: list[str], words: int) -> list[str]:
    """The pieces of the first words."""
    starts = [i for i, piece in enumerate(pieces) if piece.startswith("▁")]
    return pieces[: starts[words]] if len(starts) > words else pieces


if __name__ == "__main__":
    sys.exit(main())
