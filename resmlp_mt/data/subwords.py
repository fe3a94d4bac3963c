"""SentencePiece: train a model, load one, and find the one that belongs to a folder."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece

from resmlp_mt.data.card import CARD
from resmlp_mt.errors import UserError

JOINED_NAME = "spm.model"
# Patterns of the files that lie beside the weights of a model of text.
BESIDE = ("dict.*.txt", "spm*.model", CARD)


def train_subwords(
    lines: Iterable[str],
    vocab_size: int,
    model_type: str,
    character_coverage: float = 1.0,
    normalization_rule_name: str = "nmt_nfkc",
    user_defined_symbols: Sequence[str] = (),
    byte_fallback: bool = False,
    text: str = "the text",
) -> bytes:
    """Train a SentencePiece model and return it serialised.

    Args:
        lines: Raw sentences.
        vocab_size: Number of pieces.
        model_type: "bpe" or "unigram".
        character_coverage: Share of the text's characters that have a piece; the rarest beyond it
            become <unk>.
        normalization_rule_name: Of SentencePiece: "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf" or
            "identity". All but the last change text before it is cut into pieces, so that a model
            cannot write, for instance, "…".
        user_defined_symbols: Texts that are pieces wherever they stand; blanks may be in them.
        byte_fallback: Spell characters without a piece in bytes of UTF-8, which are 256 of the
            pieces.
        text: A name of the lines, for errors.

    Raises:
        UserError: If the text does not support that many pieces, or needs more.
    """
    model, raised = io.BytesIO(), []

    def watched():
        try:
            yield from lines
        except BaseException as error:
            raised.append(error)
            raise

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=watched(),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            character_coverage=character_coverage,
            normalization_rule_name=normalization_rule_name,
            user_defined_symbols=[text.replace(" ", "\u2581") for text in user_defined_symbols],
            byte_fallback=byte_fallback,
            minloglevel=2,
        )
    except RuntimeError as error:
        # SentencePiece wraps whatever its input raises, an interrupt too.
        if raised:
            raise raised[0] from None
        raise UserError(_explain(str(error), vocab_size, text, byte_fallback)) from None
    return model.getvalue()


def _explain(error: str, vocab_size: int, text: str, byte_fallback: bool) -> str:
    if limit := re.search(r"value <= (\d+)", error):
        return (
            f"--vocab-size {vocab_size} is more than {text} supports; "
            f"take at most {limit.group(1)}, or more text"
        )
    if "required_chars" in error or "smaller than required" in error:
        needed = re.search(r"(\d+) vs (\d+)", error)
        count = f" ({needed.group(2)} of them)" if needed else ""
        least, others = "characters", "leave rare characters to --byte-fallback with "
        if byte_fallback:
            least, others = "256 bytes and the characters", ""
        return (
            f"--vocab-size {vocab_size} is less than the {least} of {text}{count}; take more, or "
            f"{others}a lower --character-coverage"
        )
    if "sentences_.empty" in error:
        return (
            f"SentencePiece takes no line of {text}: are all longer than 4,192 bytes, or are the "
            "line ends those of an old Mac?"
        )
    return f"SentencePiece cannot learn {vocab_size} pieces from {text}: {error}"


def count_rewritten(lines: Sequence[str], model: sentencepiece.SentencePieceProcessor) -> int:
    """Count the lines that a model's normalization changes, in more than their blanks.

    Text is cut after its normalization, so no translation can have such a line unchanged.
    """
    # It writes blanks as U+2581.
    normalized = (line.replace("\u2581", " ") for line in model.normalize(list(lines)))
    return sum(new.split() != old.split() for new, old in zip(normalized, lines, strict=True))


def load_subwords(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a SentencePiece model.

    Raises:
        UserError: If the file is missing or not such a model.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such SentencePiece model")
    try:
        # SentencePiece takes an empty file for none at all.
        return sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes() or b"\0")
    except RuntimeError:
        raise UserError(f"{path}: not a SentencePiece model, or a broken one") from None


def find_subwords(folder: Path, lang: str) -> Path | None:
    """The SentencePiece model for a language in a folder: spm.LANG.model, or the joined one."""
    for name in (f"spm.{lang}.model", JOINED_NAME):
        if (folder / name).is_file():
            return folder / name
    return None
