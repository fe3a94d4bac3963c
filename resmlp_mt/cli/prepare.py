"""Raw parallel text -> SentencePiece model, dictionary and binarized data for fairseq.

Reads PREFIX.LANG for each split and language, plain or as .gz or .xz, and makes a folder that
fairseq-train and fairseq-generate take. Prints what was kept, what was dropped and why.

To train a model further on text of your own, take its subwords and dictionaries with --like:

  resmlp-mt prepare -s en -t de --like MODEL --train my/train --valid my/valid --out data-bin/my
"""

import argparse
import re
from pathlib import Path

from resmlp_mt.cli.flags import check_positive
from resmlp_mt.engines.threads import count_cores
from resmlp_mt.errors import UserError, name_flag

_MOST = 1_000_000  # pieces; SentencePiece counts in 32 bits
# What is learnt where no model's subwords are taken.
_LEARNT = {
    "vocab_size": 8000,
    "joined": True,
    "model_type": "bpe",
    "character_coverage": 1.0,
    "normalization_rule_name": "nmt_nfkc",
    "user_defined_symbols": "",
    "byte_fallback": False,
    "subword_sentences": 10_000_000,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    normalization = _LEARNT["normalization_rule_name"]
    parser.add_argument("-s", "--source-lang", required=True, metavar="LANG")
    parser.add_argument("-t", "--target-lang", required=True, metavar="LANG")
    parser.add_argument("--train", required=True, metavar="PREFIX", help="training text")
    parser.add_argument("--valid", required=True, metavar="PREFIX", help="validation text")
    parser.add_argument(
        "--test", metavar="PREFIX[,PREFIX...]", help="test text; further ones become test1, test2"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--like",
        metavar="NAME|DIR|FILE",
        help="take the subwords and dictionaries of this model, to train it further, "
        "instead of learning new ones",
    )
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", help=f"subwords (default: {_LEARNT['vocab_size']})"
    )
    sharing = parser.add_mutually_exclusive_group()
    sharing.add_argument(
        "--joined",
        action="store_true",
        help="one vocabulary for both languages (the default)",
    )
    sharing.add_argument(
        "--separate", action="store_false", dest="joined", help="a vocabulary for each language"
    )
    parser.add_argument(
        "--model-type",
        choices=["bpe", "unigram"],
        help=f"SentencePiece's kind of subwords (default: {_LEARNT['model_type']})",
    )
    parser.add_argument(
        "--character-coverage",
        type=float,
        metavar="SHARE",
        help="give a subword to the characters that make up this share of the text; rarer ones "
        f"become <unk> (default: {_LEARNT['character_coverage']})",
    )
    parser.add_argument(
        "--byte-fallback",
        action="store_true",
        help="SentencePiece's: spell characters without a subword in bytes, 256 more subwords, in "
        "the place of <unk>; emoji are kept so",
    )
    parser.add_argument(
        "--normalization-rule-name",
        choices=["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"],
        help="SentencePiece's rule for text before it is cut: NFKC makes '...' of '…' and '1⁄2' of "
        f"'½', in translations too; identity keeps them (default: {normalization})",
    )
    parser.add_argument(
        "--user-defined-symbols",
        metavar="TEXT[,TEXT...]",
        help="SentencePiece's: texts that are subwords of their own wherever they stand, such as "
        "tags",
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
        "--remove-identical",
        action="store_true",
        help="drop training pairs whose two sides are the same text",
    )
    parser.add_argument(
        "--remove-duplicates",
        action="store_true",
        help="drop training pairs that came before",
    )
    parser.add_argument(
        "--remove-repetitive",
        action="store_true",
        help="drop training pairs of which one side alone has one to four words three times in a "
        "row",
    )
    parser.add_argument(
        "--remove-wrong-language",
        action="store_true",
        help="drop training pairs with a side that py3langid takes for another language",
    )
    parser.add_argument(
        "--subword-sentences",
        type=int,
        metavar="N",
        help="let SentencePiece learn from so many sentences at most "
        f"(default: {_LEARNT['subword_sentences']:,})",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help="processes; the output does not depend on it (default: as many as cores)",
    )
    parser.set_defaults(**dict.fromkeys(_LEARNT))  # so that what is given can be told


def run(arguments: argparse.Namespace) -> None:
    """Prepare and print the report."""
    from resmlp_mt.data.filters import FILTERS, Limits
    from resmlp_mt.data.prepare import prepare
    from resmlp_mt.data.prepare_report import format_report
    from resmlp_mt.data.prepare_subwords import NewSubwords
    from resmlp_mt.data.vocabulary import Vocabulary

    check_positive(arguments, "workers")
    if not arguments.max_ratio >= 1:  # nor NaN, which no ratio is beyond
        raise UserError(f"--max-ratio must be at least 1, not {arguments.max_ratio:g}")
    tests = arguments.test.split(",") if arguments.test else []
    splits = {"train": arguments.train, "valid": arguments.valid}
    splits |= {f"test{i or ''}": prefix for i, prefix in enumerate(tests)}
    langs = arguments.source_lang, arguments.target_lang
    given = {name: getattr(arguments, name) for name in _LEARNT}
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.like:
        for name, value in given.items():
            flag = name_flag("separate" if name == "joined" and not value else name)
            raise UserError(f"{flag} is for new subwords: leave it out, or --like")
        subwords = _find_folder_of(arguments.like, langs)
    else:
        vars(arguments).update(_LEARNT | given)
        if not 0.98 <= arguments.character_coverage <= 1:  # what SentencePiece takes
            raise UserError(
                f"--character-coverage is between 0.98 and 1, not {arguments.character_coverage:g}"
            )
        check_positive(arguments, "vocab_size", "subword_sentences")
        if arguments.vocab_size > _MOST:
            raise UserError(f"--vocab-size is at most {_MOST:,}, not {arguments.vocab_size:,}")
        symbols = tuple(filter(None, arguments.user_defined_symbols.split(",")))
        for symbol in symbols:
            if symbol in Vocabulary.SPECIAL or re.fullmatch(r"madeupword\d{4}", symbol):
                raise UserError(f"--user-defined-symbols {symbol}: fairseq has this symbol itself")
            if re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", symbol):  # or it is no UTF-8
                raise UserError(f"--user-defined-symbols {symbol!a}: a character that no text has")
        subwords = NewSubwords(
            arguments.vocab_size,
            arguments.joined,
            arguments.model_type,
            arguments.character_coverage,
            arguments.normalization_rule_name,
            arguments.subword_sentences,
            symbols,
            arguments.byte_fallback,
        )
    limits = Limits(arguments.max_length, arguments.max_ratio)
    filters = [name for name in FILTERS if getattr(arguments, name)]
    reports = prepare(langs, splits, arguments.out, subwords, limits, filters, arguments.workers)
    print(format_report(reports))
    print(f"wrote {arguments.out}")


def _find_folder_of(model: str, langs: tuple[str, str]) -> Path:
    """The folder with the dictionaries and SentencePiece models of a model, or of prepared data."""
    from resmlp_mt.data.subwords import find_subwords
    from resmlp_mt.files.finding import PRETRAINED

    def has_all(folder: Path) -> bool:
        return all(
            (folder / f"dict.{lang}.txt").is_file() and find_subwords(folder, lang)
            for lang in langs
        )

    for folder in (Path(model), PRETRAINED / model):
        if has_all(folder):
            return folder
    # Here, since it takes seconds.
    from resmlp_mt.checkpoints.loading import find_companions, read_checkpoint

    path, state = read_checkpoint(model, "text")
    folder, *_ = find_companions(path, state)
    if not has_all(folder):
        raise UserError(
            f"--like {model}: its dictionaries in {folder} are not for {langs[0]} and {langs[1]}"
        )
    return folder
