"""Text that a model would translate to nonsense without a word."""

import logging
import sys
from argparse import Namespace
from pathlib import Path

from fairseq import checkpoint_utils
from fairseq.data.data_utils import infer_language_pair

from resmlp_mt.compat.patching import patch
from resmlp_mt.data.subwords import find_subwords

logger = logging.getLogger(__name__)


def warn_of_other_languages() -> None:
    """Warn where a model is asked to translate from another language than it was trained on.

    With one dictionary for both languages fairseq translates from either, and scores almost 0.
    """

    @patch(checkpoint_utils, "load_model_ensemble_and_task")
    def load(load_ensemble, filenames, *args, **kwargs):
        models, cfg, task = load_ensemble(filenames, *args, **kwargs)
        trained, asked = _languages(cfg.task), _languages(getattr(task, "cfg", None))
        if trained and asked and trained != asked:
            logger.warning(
                "%s was trained to translate from %s to %s, not from %s to %s: look at "
                "--source-lang and --target-lang",
                ":".join(filenames), *trained, *asked,
            )  # fmt: skip
        return models, cfg, task


def _languages(task_cfg) -> tuple[str, str] | None:
    pair = tuple(getattr(task_cfg, name, None) for name in ("source_lang", "target_lang"))
    if None in pair:  # fairseq-train reads them from the names of the data
        folder = Path(str(getattr(task_cfg, "data", None)).split(":")[0])
        pair = infer_language_pair(str(folder)) if folder.is_dir() else pair
    return None if None in pair else tuple(pair)


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
