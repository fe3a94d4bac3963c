"""Print the figures of a finished training as JSON, for scripts/append_row.py.

    python scripts/translation_figures.py RUN NAME=VALUE ... --hypotheses FILE --references FILE

RUN holds train.log, by fairseq-train, and command, by train.sh. The NAME=VALUE pairs are the row's
first columns. SacreBLEU on raw text is the main score. With --moses the BLEU of the literature is
beside it: on words as Moses splits them, which needs `pip install sacremoses`.
"""

import argparse
import json
import re
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from resmlp_mt.analysis.training_log import read_log
from resmlp_mt.data.reading import read_lines

try:
    from sacremoses import MosesTokenizer
except ImportError:
    MosesTokenizer = None


def main() -> None:
    """Collect the figures from the run's own files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of the training")
    parser.add_argument("columns", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--hypotheses", type=Path, required=True)
    parser.add_argument("--references", type=Path, required=True)
    parser.add_argument("--moses", metavar="LANG", help="score the words of this language too")
    parser.add_argument("--lowercase", action="store_true", help="those words in lower case")
    parser.add_argument(
        "--split-compounds", action="store_true", help="and once more without hyphens in them"
    )
    arguments = parser.parse_args()
    if any("=" not in column for column in arguments.columns):
        parser.error(f"a column is NAME=VALUE, and not all of {arguments.columns} are")
    if arguments.moses is None and (arguments.lowercase or arguments.split_compounds):
        parser.error("--lowercase and --split-compounds are for the words of --moses")
    if arguments.moses and MosesTokenizer is None:
        parser.error("--moses needs sacremoses: pip install sacremoses")

    hypotheses = list(read_lines(arguments.hypotheses))
    references = [list(read_lines(arguments.references))]
    bleu, chrf = BLEU(), CHRF()
    score = bleu.corpus_score(hypotheses, references)
    if arguments.moses:
        words = _score_words(arguments, hypotheses, references[0])
    else:  # what is nearest to it
        lowercased = BLEU(lowercase=True).corpus_score(hypotheses, references)
        words = {"bleu_lowercase": f"{lowercased.score:.2f}"}
    updates, valid = read_log(arguments.run / "train.log", "nll_loss")[1][-1]
    figures = dict(column.split("=", 1) for column in arguments.columns) | {
        "parameters": None,  # from the log
        "updates": updates,
        "bleu": f"{score.score:.2f}",
        "chrf": f"{chrf.corpus_score(hypotheses, references).score:.2f}",
        **words,
        "brevity_penalty": f"{score.bp:.3f}",
        "valid_nll_base2": f"{valid:.3f}",
        "train_seconds": None,
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "commit": None,
        "date": None,
        "machine": None,
        "command": (arguments.run / "command").read_text("utf-8").strip(),
    }
    print(json.dumps(figures))


def _score_words(
    arguments: argparse.Namespace, hypotheses: list[str], references: list[str]
) -> dict[str, str]:
    columns = {"bleu_tokenized": lambda side: side}
    if arguments.split_compounds:
        columns["bleu_split"] = split_compounds
    sides = [
        tokenize(side, arguments.moses, arguments.lowercase) for side in (hypotheses, references)
    ]
    # force: the text is tokenized on purpose, which SacreBLEU would warn of.
    bleu = BLEU(tokenize="none", force=True)
    return {
        column: f"{bleu.corpus_score(edit(sides[0]), [edit(sides[1])]).score:.2f}"
        for column, edit in columns.items()
    }


def tokenize(lines: list[str], lang: str, lowercase: bool) -> list[str]:
    """Words as Moses splits them, with the one apostrophe that the literature's recipes keep."""
    moses = MosesTokenizer(lang)
    words = (moses.tokenize(line.replace("\u2019", "'"), return_str=True) for line in lines)
    return [line.lower() if lowercase else line for line in words]


def split_compounds(lines: list[str]) -> list[str]:
    """Make three words of `well-known`, marked as the script of Vaswani et al. marks them."""
    return [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line) for line in lines]


if __name__ == "__main__":
    main()
