"""--tokenize, and the BLEU that it asks for."""

import argparse
import re
import warnings

from resmlp_mt.errors import UserError


def add_tokenize(parser: argparse.ArgumentParser) -> None:
    """Add --tokenize."""
    parser.add_argument(
        "--tokenize",
        default="13a",
        metavar="NAME",
        help="SacreBLEU's tokenizer for BLEU: 13a, intl, none, which split at blanks; zh, ja-mecab "
        "(pip install 'sacrebleu[ja]'), ko-mecab ('sacrebleu[ko]'), char; or flores101 (spm), "
        "flores200, spBLEU-1K, which are downloaded",
    )


def make_bleu(tokenize: str, references: list[str], lowercase: bool = False):
    """SacreBLEU's BLEU, with a warning if its tokenizer takes whole sentences for words.

    Raises:
        UserError: If there is no such tokenizer, or it needs what is not installed.
    """
    from sacrebleu.metrics import BLEU

    from resmlp_mt.text.punctuation import UNSPACED

    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(
            f"--tokenize {tokenize}: SacreBLEU has {', '.join(sorted(BLEU.TOKENIZERS))}"
        )
    try:
        bleu = BLEU(tokenize=tokenize, lowercase=lowercase)
    except (ImportError, RuntimeError, OSError) as error:  # a package or a download is missing
        raise UserError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None
    if are_unspaced(references):
        found = re.findall(f"[{UNSPACED}]", "".join(references))
        letters = "".join(filter(str.isalpha, found))[:100]
        if letters and " " not in bleu.tokenizer(letters).strip():
            warnings.warn(
                f"--tokenize {tokenize} takes text without blanks for one word, so that BLEU says "
                "little: zh suits Chinese, ja-mecab Japanese (pip install 'sacrebleu[ja]'), and "
                "char any of them",
                stacklevel=2,
            )
    return bleu


def are_unspaced(lines: list[str]) -> bool:
    """Whether most of the characters are of scripts without blanks between words."""
    from resmlp_mt.text.punctuation import UNSPACED

    text = "".join("".join(lines).split())
    return 2 * len(re.findall(f"[{UNSPACED}]", text)) > len(text)
