"""Raw parallel text -> SentencePiece model, dictionary and binarized data for fairseq.

Reads PREFIX.LANG for each split and language, plain or as .gz or .xz, and makes a folder that
fairseq-train and fairseq-generate take. Prints what was kept, what was dropped and why.

To train a model further on text of your own, take its subwords and dictionaries with --like:

  resmlp-mt prepare -s en -t de --like MODEL --train my/train --valid my/valid --out data-bin/my
"""

import argparse
import re
from pathlib import Path

from resmlp_mt.cli.flags import positive, refuse_given, within
from resmlp_mt.engines.threads import count_cores
from resmlp_mt.errors import UserError

# What is learnt where no model's subwords are taken.
_LEARNT = {
    "vocab_size": 8000,
    "model_type": "bpe",
    "character_coverage": 1.0,
    "normalization_rule_name": "nmt_nfkc",
    "user_defined_symbols": (),
    "byte_fallback": False,
}
_SENTENCES = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    switch, prefix = dict(action="store_true"), dict(required=True, metavar="PREFIX")
    add = parser.add_argument
    add("-s", "--source-lang", required=True, metavar="LANG")
    add("-t", "--target-lang", required=True, metavar="LANG")
    add("--train", **prefix, help="training text")
    add("--valid", **prefix, help="validation text")
    add("--test", metavar="PREFIX[,PREFIX...]", help="test text; further ones become test1, test2")
    add("--out", required=True, type=Path, metavar="DIR", help="folder to make")
    said = "take the subwords of this model, to train it further, in place of new ones"
    add("--like", metavar="NAME|DIR|FILE", help=said)
    add("--max-length", type=int, default=250, metavar="N", help="most subwords of a side")
    ratio = within(1, kind=float)
    add("--max-ratio", type=ratio, default=9.0, metavar="R", help="most lengths of the other side")
    add("--remove-identical", **switch, help="drop training pairs whose sides are the same text")
    add("--remove-duplicates", **switch, help="drop training pairs that came before")
    said = "drop training pairs of which one side alone repeats one to four words three times"
    add("--remove-repetitive", **switch, help=said)
    said = "drop training pairs with a side that py3langid takes for another language"
    add("--remove-wrong-language", **switch, help=said)
    said = "processes; the output does not depend on it"
    add("--workers", type=positive, default=count_cores(), metavar="N", help=said)
    _add_subwords(parser)


def _add_subwords(parser: argparse.ArgumentParser) -> None:
    """Add the flags of what is learnt."""
    group = parser.add_argument_group("new subwords")
    add = group.add_argument
    most = within(1, 10**6)  # SentencePiece counts in 32 bits
    add("--vocab-size", type=most, metavar="N", help="subwords (default: 8000)")
    sharing = group.add_mutually_exclusive_group()
    sharing.add_argument("--joined", action="store_true", help="one vocabulary (the default)")
    said = "a vocabulary for each language"
    sharing.add_argument("--separate", action="store_true", help=said)
    add("--model-type", choices=["bpe", "unigram"], help="SentencePiece's (default: bpe)")
    said = "of the text's characters get subwords; rarer ones become <unk> (default: 1.0)"
    taken = within(0.98, 1, float)  # by SentencePiece
    add("--character-coverage", type=taken, metavar="SHARE", help=said)
    said = "spell characters without a subword in bytes, 256 more subwords; emoji are kept so"
    add("--byte-fallback", action="store_true", help=said)
    rules = ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"]
    said = "NFKC makes '...' of '…', in translations too; identity keeps it (default: nmt_nfkc)"
    add("--normalization-rule-name", choices=rules, help=said)
    said = "texts that are subwords of their own wherever they stand"
    add("--user-defined-symbols", type=_symbols, metavar="TEXT[,TEXT...]", help=said)
    said = "sentences to learn from at most (default: 10,000,000)"
    add("--subword-sentences", type=positive, metavar="N", help=said)


def run(arguments: argparse.Namespace) -> None:
    """Prepare and print the report."""
    from resmlp_mt.data.filters import FILTERS, Limits
    from resmlp_mt.data.prepare import prepare
    from resmlp_mt.data.prepare_report import format_report
    from resmlp_mt.data.prepare_subwords import NewSubwords

    tests = arguments.test.split(",") if arguments.test else []
    splits = {"train": arguments.train, "valid": arguments.valid}
    splits |= {f"test{i or ''}": prefix for i, prefix in enumerate(tests)}
    langs = arguments.source_lang, arguments.target_lang
    if arguments.like:
        names = (*_LEARNT, "joined", "separate", "subword_sentences")
        refuse_given(arguments, names, "is for new subwords: leave it out, or --like")
        subwords = _find_folder_of(arguments.like, langs)
    else:
        given = {name: getattr(arguments, name) for name in _LEARNT}
        learnt = _LEARNT | {name: value for name, value in given.items() if value is not None}
        sentences = arguments.subword_sentences or _SENTENCES
        subwords = NewSubwords(not arguments.separate, sentences, learnt)
    limits = Limits(arguments.max_length, arguments.max_ratio)
    filters = [name for name in FILTERS if getattr(arguments, name)]
    reports = prepare(langs, splits, arguments.out, subwords, limits, filters, arguments.workers)
    print(format_report(reports))
    print(f"wrote {arguments.out}")


def _symbols(text: str) -> tuple[str, ...]:
    from resmlp_mt.data.vocabulary import Vocabulary

    symbols = tuple(filter(None, text.split(",")))
    for symbol in symbols:
        if symbol in Vocabulary.SPECIAL or re.fullmatch(r"madeupword\d{4}", symbol):
            raise argparse.ArgumentTypeError(f"{symbol}: fairseq has this symbol itself")
        if re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", symbol):  # or it is no UTF-8
            raise argparse.ArgumentTypeError(f"{symbol!a}: a character that no text has")
    return symbols


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
