"""Flags of fairseq's programs that cannot be, which end in a traceback later, or in nonsense."""

import ast
import difflib
import json
import math
import os
from argparse import Namespace
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

from fairseq.data.data_utils import get_buckets
from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.dataclass.configs import GenerationConfig
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, FairseqEncoderDecoderModel
from fairseq.utils import split_paths

from resmlp_mt.compat.checkpoints import load_checkpoint
from resmlp_mt.errors import UserError, name_flag, name_some
from resmlp_mt.files.finding import LAST
from resmlp_mt.files.kinds import is_of_images

# Where numbers begin and end. Beyond, fairseq and torch end in a traceback, some of them late, or
# train what is none.
_RANGES = {
    (1, math.inf): "update_freq max_tokens batch_size log_interval save_interval validate_interval "
    "beam",
    (0, math.inf): "lr num_workers seed warmup_updates weight_decay adam_eps",
    (0, 1): "label_smoothing ema_decay",
}
# Figures of which the best is the highest, and the lowest.
_HIGHEST = ("bleu", "accuracy", "top1", "top5")
_LOWEST = ("loss", "nll_loss", "ppl")
_NO_FILE = "@@ "  # what fairseq takes --replace-unk for where nothing follows it
# What these criterions teach or read, and no model of ours has.
_NOT_OURS = {
    "adaptive_loss": "an adaptive softmax",
    "label_smoothed_cross_entropy_with_alignment": "a head that learns alignments",
}
_BETAS = ("adam_betas", "adamax_betas", "lamb_betas")


class _Flags(Namespace):
    """The flags of a program. Those that it has not are None."""

    def __getattr__(self, name: str) -> None:
        return None


def check_flags(flags: Namespace) -> None:
    """Refuse what cannot be, before anything is loaded.

    Raises:
        UserError: Naming the flag.
    """
    flags = _Flags(**vars(flags))
    _check_modality(flags)
    _check_model(flags)
    _check_numbers(flags)
    _check_schedule(flags)
    _check_optimizer(flags)
    _check_packages(flags)
    _check_metric(flags)
    _check_best(flags)
    _check_bleu(flags)
    _check_start(flags)
    _check_overrides(flags)
    _check_search(flags)
    _check_leaving_out(flags)


def _check_modality(flags: _Flags) -> None:
    """Refuse a model of text for images, and one of ours for images for text."""
    arch, task = flags.arch, str(flags.task)
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if is_of_images(task) and issubclass(model, FairseqEncoderDecoderModel):
        raise UserError(
            f"--arch {arch} is a model of text, --task {task} is for images: choose --arch or "
            "--task anew"
        )
    if task == "translation" and getattr(model, "modality", None) == "images":
        raise UserError(
            f"--arch {arch} is a model of images, --task {task} is for text: give --task "
            "image_classification, or another --arch"
        )


def _check_model(flags: _Flags) -> None:
    """Refuse tasks and criterions for which a model of ours lacks something."""
    if not is_our_translator(flags.arch):
        return
    if flags.task in ("online_backtranslation", "translation_lev"):
        raise UserError(
            f"--task {flags.task} is not for --arch {flags.arch}: give --task translation"
        )
    if lacking := _NOT_OURS.get(flags.criterion):
        raise UserError(
            f"--criterion {flags.criterion} needs {lacking}, which --arch {flags.arch} has not: "
            "take label_smoothed_cross_entropy"
        )


def is_our_translator(arch: str | None) -> bool:
    """Whether a preset is of a model of ours for text."""
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    ours = model.__module__.partition(".")[0] == "resmlp_mt"
    return ours and issubclass(model, FairseqEncoderDecoderModel)


def _check_numbers(flags: _Flags) -> None:
    for (least, most), names in _RANGES.items():
        for name in names.split():
            given = getattr(flags, name)
            if given == []:
                raise UserError(f"{name_flag(name)} is empty")
            for number in given if isinstance(given, list) else [given]:
                if number is not None and not least <= number <= most:
                    bound = f"at most {most}" if number > most else f"at least {least}"
                    raise UserError(f"{name_flag(name)} must be {bound}, not {number}")
    for name in _BETAS:
        if isinstance(given := getattr(flags, name), str) and not _are_betas(_read_literal(given)):
            raise UserError(
                f"{name_flag(name)} {given}: give two numbers from 0 to below 1, as '(0.9, 0.98)'"
            )


def _are_betas(value: object) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in value)
    )


def _check_schedule(flags: _Flags) -> None:
    """Refuse schedules without a length."""
    kind, most = flags.lr_scheduler, flags.max_update or 0
    # A longer warm-up is harmless, since the training ends in it.
    if kind == "cosine" and flags.lr_period_updates <= 0 and flags.warmup_updates == most > 0:
        raise UserError(
            f"--warmup-updates {most} leaves no update for --lr-scheduler cosine: --max-update is "
            f"{most}"
        )
    if kind == "cosine" and flags.lr_period_updates <= 0 and most <= 0:
        raise UserError("--lr-scheduler cosine needs --max-update, or --lr-period-updates")
    if kind == "polynomial_decay" and flags.total_num_update is None and most <= 0:
        raise UserError("--lr-scheduler polynomial_decay needs --max-update, or its own length")
    if kind == "tri_stage":
        steps = flags.warmup_steps + flags.hold_steps + flags.decay_steps
        if steps <= 0 and (flags.phase_ratio is None or most <= 0):
            raise UserError(
                "--lr-scheduler tri_stage needs --warmup-steps, --hold-steps and --decay-steps, or "
                "--phase-ratio and --max-update"
            )
    if kind == "manual":
        for name in ("epoch2lr", "update2lr"):
            _check_rates(f"--{name}", getattr(flags, name))


def _check_rates(flag: str, given: str) -> None:
    rates = _read_literal(given.replace(" ", ""))
    if not (isinstance(rates, dict) and all(isinstance(key, str) for key in rates)):
        raise UserError(
            f"{flag} {given}: give rates with their keys in quotes, as \"{{'1-9': 1e-3}}\""
        )


def _check_optimizer(flags: _Flags) -> None:
    """Refuse optimizers that cannot be built from a command line."""
    if flags.optimizer == "composite":
        raise UserError(
            "--optimizer composite needs groups, which only a file for fairseq-hydra-train can name"
        )
    for name in ("relative_step", "warmup_init"):
        if flags.optimizer == "adafactor" and getattr(flags, name):
            raise UserError(
                f"{name_flag(name)} is for rates without --lr, which fairseq always sets: leave "
                "it out"
            )


def _check_packages(flags: _Flags) -> None:
    """Refuse what needs a package that is not installed."""
    sharded = "--ddp-backend fully_sharded"
    for package, flag, is_given in (
        ("iopath", "--write-checkpoints-asynchronously", flags.write_checkpoints_asynchronously),
        ("wandb", "--wandb-project", flags.wandb_project),
        ("fairscale", sharded, flags.ddp_backend == "fully_sharded"),
    ):
        if is_given and find_spec(package) is None:
            raise UserError(f"{flag} needs {package}: pip install {package}")


def _check_metric(flags: _Flags) -> None:
    """Refuse to look for the best of what is not measured, before an epoch is trained."""
    losses = ("cross_entropy", "label_smoothed_cross_entropy")
    known_loss = str(flags.criterion).removesuffix("_in_chunks") in losses
    metric = flags.best_checkpoint_metric
    if metric is None or not known_loss or flags.task != "translation":
        return
    logged = {"loss", "nll_loss", "ppl"}
    for name, flag in ("bleu", "eval_bleu"), ("accuracy", "report_accuracy"):
        if getattr(flags, flag):
            logged.add(name)
        elif metric == name and getattr(flags, flag) is not None:
            raise UserError(f"--best-checkpoint-metric {name} needs {name_flag(flag)}")
    if metric not in logged:
        raise UserError(
            f"--best-checkpoint-metric {metric}: no such figure; there are "
            f"{', '.join(sorted(logged))}"
        )


def _check_best(flags: _Flags) -> None:
    """Refuse what would keep the worst checkpoint for the best."""
    metric, highest = flags.best_checkpoint_metric, flags.maximize_best_checkpoint_metric
    if metric is None or flags.disable_validation:
        return
    if metric.removeprefix("ema_").removeprefix("real_") in _HIGHEST and not highest:
        raise UserError(
            f"--best-checkpoint-metric {metric} would keep the lowest: give "
            "--maximize-best-checkpoint-metric too"
        )
    if metric in _LOWEST and highest:
        raise UserError(
            f"--maximize-best-checkpoint-metric would keep the highest {metric}: leave it out"
        )
    if flags.patience <= 0 or flags.no_save:
        return
    for after, flag in ("updates", "interval-updates"), ("epochs", "interval"):
        often, saves = (
            getattr(flags, f"{what}_{flag.replace('-', '_')}") for what in ("validate", "save")
        )
        if often > 0 and (saves <= 0 or often % saves):
            raise UserError(
                f"--patience counts validations of which no checkpoint is kept: every {often} "
                f"{after}, by --validate-{flag}; give --save-{flag} {often} too"
            )


def _check_start(flags: _Flags) -> None:
    """Refuse two places to start a training from."""
    if flags.finetune_from_model is None:
        return
    if flags.restore_file != LAST:
        raise UserError(
            "--finetune-from-model starts from weights, --restore-file goes on with a training: "
            "give one of them"
        )
    for name in ("optimizer", "lr_scheduler", "meters", "dataloader"):
        if getattr(flags, f"reset_{name}"):
            flag = name_flag(f"reset_{name}")
            raise UserError(f"--finetune-from-model resets that anyway: leave out {flag}")


def _check_bleu(flags: _Flags) -> None:
    """Refuse what BLEU cannot be measured with, which shows at the first validation else."""
    if not flags.eval_bleu:
        return
    if (how := flags.eval_bleu_detok) not in TOKENIZER_REGISTRY:
        raise UserError(
            f"--eval-bleu-detok {how}: there are {', '.join(sorted(TOKENIZER_REGISTRY))}"
        )
    _read_object("--eval-bleu-detok-args", flags.eval_bleu_detok_args)
    given = _read_object("--eval-bleu-args", flags.eval_bleu_args)
    known = [field.name for field in fields(GenerationConfig)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known)
            meant = f"; did you mean {name_some(near)}?" if near else ""
            raise UserError(f"--eval-bleu-args: no option of a search is called {name}{meant}")
    beam = given.get("beam", 1)
    if not isinstance(beam, int) or beam < 1:
        raise UserError(f"--eval-bleu-args: beam must be at least 1, not {beam!r}")


def _check_overrides(flags: _Flags) -> None:
    """Refuse what is no dictionary of Python, which fairseq reads late."""
    for name in ("optimizer_overrides", "model_overrides"):
        given = getattr(flags, name)
        if given is not None and not isinstance(_read_literal(given), dict):
            raise UserError(
                f"{name_flag(name)} {given}: no dictionary of Python, such as \"{{'dropout': 0}}\""
            )


def _check_search(flags: _Flags) -> None:
    """Refuse searches that end in a traceback at the first sentence."""
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
    if flags.bpe == flags.post_process == "sentencepiece":
        raise UserError(
            "--post-process sentencepiece joins what --bpe sentencepiece joins too, and no blanks "
            "would be left: leave it out"
        )
    subwords = flags.sentencepiece_model
    is_here = subwords and not PathManager.path_requires_pathmanager(subwords)
    if is_here and not os.path.isfile(subwords):
        raise UserError(f"--sentencepiece-model {subwords}: no such file")
    if (path := flags.lm_path) and os.path.isfile(path):
        name = load_checkpoint(path)["cfg"].model._name
        model = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name, object)
        if issubclass(model, FairseqEncoderDecoderModel):
            raise UserError(
                f"--lm-path {path}: a translator ({name}), not a language model of what it writes"
            )


def _check_leaving_out(flags: _Flags) -> None:
    """Refuse flags that leave out a part of the work, or all of it, without a word."""
    trains, shards = flags.max_update is not None, (flags.num_shards, flags.shard_id)
    if flags.task == "translation" and shards not in ((None, None), (1, 0)):
        raise UserError(
            "--num-shards and --shard-id do nothing in fairseq, and all is done in each shard: use "
            "'resmlp-mt translate --shard I/N', or torchrun for a training"
        )
    if flags.combine_valid_subsets and "," in flags.valid_subset:
        raise UserError(
            f"--combine-valid-subsets joins valid, valid1 ...: give --valid-subset valid with it, "
            f"not {flags.valid_subset}"
        )
    if "," in (flags.train_subset or ""):
        raise UserError(
            f"--train-subset {flags.train_subset}: name one set; put more beside it as train1, "
            "train2 ..., which are trained on too"
        )
    if flags.load_alignments and trains:
        alignments = f"{flags.train_subset}.align.*"
        if not any(any(Path(d).glob(alignments)) for d in split_paths(flags.data)):
            raise UserError(
                f"--load-alignments: {flags.data} has no {alignments}: prepare them with "
                "fairseq-preprocess --align-suffix, or leave it out"
            )
    validates = trains and not flags.disable_validation
    if validates and flags.train_subset in flags.valid_subset.split(","):
        # Each would take epochs of the other's iterator.
        raise UserError(
            f"--train-subset and --valid-subset have {flags.train_subset}, and fairseq leaves "
            "epochs out: give --disable-validation, or a copy of the set under another name"
        )
    if flags.num_batch_buckets:
        try:
            get_buckets([1, 2], flags.num_batch_buckets)
        except TypeError:
            raise UserError(
                "--num-batch-buckets: fairseq's buckets need an older NumPy; leave it out"
            ) from None


def _read_literal(text: str) -> object:
    """What Python takes a text for; None where that is nothing."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        return None


def _read_object(flag: str, given: str | None) -> dict:
    try:
        if isinstance(found := json.loads(given or "{}"), dict):
            return found
    except ValueError:
        pass
    raise UserError(f"{flag} {given}: no object in JSON, such as '{{\"beam\": 5}}'")
