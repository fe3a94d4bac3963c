"""Raw parallel text -> SentencePiece model, dictionary and binarized data for fairseq.

Reads PREFIX.LANG for each split and language, plain or as .gz or .xz, and makes a folder that
fairseq-train and fairseq-generate take. Prints what was kept, what was dropped and why.
"""

import argparse
import os
from pathlib import Path

from resmlp_mt.cli.flags import check_positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("-s", "--source-lang", required=True, metavar="LANG")
    parser.add_argument("-t", "--target-lang", required=True, metavar="LANG")
    parser.add_argument("--train", required=True, metavar="PREFIX", help="training text")
    parser.add_argument("--valid", required=True, metavar="PREFIX", help="validation text")
    parser.add_argument(
        "--test", metavar="PREFIX[,PREFIX...]", help="test text; further ones become test1, test2"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--vocab-size", type=int, default=8000, metavar="N", help="subwords (default: %(default)s)"
    )
    sharing = parser.add_mutually_exclusive_group()
    sharing.add_argument(
        "--joined",
        action="store_true",
        default=True,
        help="one vocabulary for both languages (the default)",
    )
    sharing.add_argument(
        "--separate", action="store_false", dest="joined", help="a vocabulary for each language"
    )
    parser.add_argument(
        "--model-type",
        choices=["bpe", "unigram"],
        default="bpe",
        help="SentencePiece's kind of subwords (default: %(default)s)",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        default=250,
        metavar="N",
        help="drop training pairs with more subwords on a side (default: %(default)s)",
    )
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=9.0,
        metavar="R",
        help="drop training pairs with a side R times as long as the other (default: %(default)s)",
    )
    parser.add_argument(
        "--subword-sentences",
        type=int,
        default=10_000_000,
        metavar="N",
        help="let SentencePiece learn from so many sentences at most (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N")


def run(arguments: argparse.Namespace) -> None:
    """Prepare and print the report."""
    from resmlp_mt.data.prepare import format_report, prepare

    check_positive(arguments, "subword_sentences")
    tests = arguments.test.split(",") if arguments.test else []
    splits = {"train": arguments.train, "valid": arguments.valid}
    splits |= {f"test{i or ''}": prefix for i, prefix in enumerate(tests)}
    reports = prepare(
        arguments.source_lang,
        arguments.target_lang,
        splits,
        arguments.out,
        arguments.vocab_size,
        arguments.joined,
        arguments.model_type,
        arguments.max_length,
        arguments.max_ratio,
        arguments.subword_sentences,
        arguments.workers,
    )
    print(format_report(reports))
    print(f"wrote {arguments.out}")
