"""Searches that end in a traceback at the first sentence, or do something else."""

import os
from dataclasses import fields

from fairseq.dataclass.configs import GenerationConfig
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, FairseqEncoderDecoderModel

from resmlp_mt.compat.checkpoints import load_checkpoint
from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.errors import UserError, name_flag

_NO_FILE = "@@ "  # what fairseq takes --replace-unk for where nothing follows it


def check_search(flags: Flags) -> None:
    """Refuse numbers that do not fit each other, and flags that do nothing."""
    searches = flags.nbest is not None
    if flags.sampling and flags.nbest != flags.beam:
        raise UserError(
            f"--sampling draws --beam {flags.beam} translations, and --nbest {flags.nbest} are "
            "wanted: give both the same number"
        )
    if searches and flags.max_len_a <= 0 and flags.max_len_b < max(1, flags.min_len):
        raise UserError(
            f"--max-len-b {flags.max_len_b} leaves a translation no room: give {flags.min_len} or "
            "more, the --min-len"
        )
    if flags.retain_dropout_modules and not flags.retain_dropout:
        raise UserError("--retain-dropout-modules does nothing without --retain-dropout: give both")
    if flags.replace_unk == _NO_FILE:
        raise UserError("--replace-unk needs a file: a word and its translation on each line")
    for option in fields(GenerationConfig):
        name, in_steps = option.name, ("iter_decode_", "print_step", "retain_iter_history")
        is_given = getattr(flags, name) not in (None, option.default)
        if is_given and name.startswith(in_steps) and flags.task == "translation":
            raise UserError(f"{name_flag(name)} is for models that translate in steps of their own")
    if searches and flags.bf16:
        raise UserError("--bf16 does nothing in a search of fairseq: leave it out")


def check_joining(flags: Flags) -> None:
    """Refuse subwords that cannot be joined, or would be twice."""
    if flags.bpe == flags.post_process == "sentencepiece":
        raise UserError(
            "--post-process sentencepiece joins what --bpe sentencepiece joins too, and no blanks "
            "would be left: leave it out"
        )
    subwords = flags.sentencepiece_model
    is_here = subwords and not PathManager.path_requires_pathmanager(subwords)
    if is_here and not os.path.isfile(subwords):
        raise UserError(f"--sentencepiece-model {subwords}: no such file")


def check_language_model(flags: Flags) -> None:
    """Refuse translators as the language model of a search."""
    if (path := flags.lm_path) and os.path.isfile(path):
        name = load_checkpoint(path)["cfg"].model._name
        model = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name, object)
        if issubclass(model, FairseqEncoderDecoderModel):
            raise UserError(
                f"--lm-path {path}: a translator ({name}), not a language model of what it writes"
            )
