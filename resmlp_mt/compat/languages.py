"""Raw text where fairseq-interactive expects subwords."""

import logging
import sys
from argparse import Namespace
from pathlib import Path

from fairseq.data.data_utils import infer_language_pair

from resmlp_mt.data.subwords import find_subwords

logger = logging.getLogger(__name__)


def warn_of_whole_words(flags: Namespace) -> None:
    """Warn where fairseq-interactive would look raw words up whole: most become <unk>.

    Args:
        flags: Parsed, of any program of fairseq.
    """
    stock = Path(sys.argv[0]).name == "fairseq-interactive"  # our own command splits words itself
    if stock and flags.bpe is None and (model := find_splitter(flags)):
        logger.warning(
            "the input must be split into subwords already; for raw text add "
            "--bpe sentencepiece --sentencepiece-model %s",
            model,
        )


def find_splitter(flags: Namespace) -> Path | None:
    """The SentencePiece model of the source language in the data folder, if there is one.

    Args:
        flags: Parsed, of fairseq-interactive.
    """
    folder, source = Path(getattr(flags, "data", None) or ""), getattr(flags, "source_lang", None)
    if source is None and folder.is_dir():
        source, _ = infer_language_pair(str(folder))
    return find_subwords(folder, source) if source else None
