"""Flags of fairseq's programs that cannot be, which end in a traceback later, or in nonsense."""

import ast
import difflib
import json
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
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.finding import LAST
from resmlp_mt.files.kinds import is_of_images

# The least that numbers may be, and the most of some. Beyond, fairseq and torch end in a traceback,
# some of them late, or train what is none.
_LEAST = {
    "lr": 0,
    "update_freq": 1,
    "max_tokens": 1,
    "batch_size": 1,
    "log_interval": 1,
    "save_interval": 1,
    "validate_interval": 1,
    "beam": 1,
    "num_workers": 0,
    "seed": 0,
    "warmup_updates": 0,
    "weight_decay": 0,
    "adam_eps": 0,
    "label_smoothing": 0,
    "ema_decay": 0,
}
_MOST = {"label_smoothing": 1, "ema_decay": 1}
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


def check_flags(flags: Namespace) -> None:
    """Refuse what cannot be, before anything is loaded.

    Raises:
        UserError: Naming the flag.
    """
    _check_modality(flags)
    _check_model(flags)
    _check_numbers(flags)
    _check_sampling(flags)
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


def _check_modality(flags: Namespace) -> None:
    """Refuse a model of text for images, and one of ours for images for text."""
    arch, task = getattr(flags, "arch", None), str(getattr(flags, "task", None))
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


def _check_model(flags: Namespace) -> None:
    """Refuse tasks and criterions for which a model of ours lacks something."""
    arch, task = getattr(flags, "arch", None), getattr(flags, "task", None)
    if not is_our_translator(arch):
        return
    if task in ("online_backtranslation", "translation_lev"):
        raise UserError(f"--task {task} is not for --arch {arch}: give --task translation")
    if lacking := _NOT_OURS.get(getattr(flags, "criterion", None)):
        raise UserError(
            f"--criterion {flags.criterion} needs {lacking}, which --arch {arch} has not: take "
            "label_smoothed_cross_entropy"
        )


def is_our_translator(arch: str | None) -> bool:
    """Whether a preset is of a model of ours for text."""
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    ours = model.__module__.partition(".")[0] == "resmlp_mt"
    return ours and issubclass(model, FairseqEncoderDecoderModel)


def _check_numbers(flags: Namespace) -> None:
    for name, least in _LEAST.items():
        flag, given = name.replace("_", "-"), getattr(flags, name, None)
        if given == []:
            raise UserError(f"--{flag} is empty")
        for number in given if isinstance(given, list) else [given]:
            if number is None:
                continue
            if number < least:
                raise UserError(f"--{flag} must be at least {least}, not {number}")
            if number > _MOST.get(name, number):
                raise UserError(f"--{flag} must be at most {_MOST[name]}, not {number}")
    for name in _BETAS:
        if isinstance(given := getattr(flags, name, None), str) and not _are_betas(given):
            flag = name.replace("_", "-")
            raise UserError(
                f"--{flag} {given}: give two numbers from 0 to below 1, as '(0.9, 0.98)'"
            )


def _check_sampling(flags: Namespace) -> None:
    """Refuse other numbers of drawn translations than those that are given out."""
    if getattr(flags, "sampling", False) and flags.nbest != flags.beam:
        raise UserError(
            f"--sampling draws --beam {flags.beam} translations, and --nbest {flags.nbest} are "
            "wanted: give both the same number"
        )


def _are_betas(text: str) -> bool:
    try:
        first, second = ast.literal_eval(text)
        return 0 <= first < 1 and 0 <= second < 1
    except (ValueError, TypeError, SyntaxError):
        return False


def _check_schedule(flags: Namespace) -> None:
    """Refuse schedules without a length."""
    kind, most = getattr(flags, "lr_scheduler", None), getattr(flags, "max_update", 0)
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
    try:
        rates = ast.literal_eval(given.replace(" ", ""))
        if isinstance(rates, dict) and all(isinstance(key, str) for key in rates):
            return
    except (ValueError, SyntaxError):
        pass
    raise UserError(f"{flag} {given}: give rates with their keys in quotes, as \"{{'1-9': 1e-3}}\"")


def _check_optimizer(flags: Namespace) -> None:
    """Refuse optimizers that cannot be built from a command line."""
    optimizer = getattr(flags, "optimizer", None)
    if optimizer == "composite":
        raise UserError(
            "--optimizer composite needs groups, which only a file for fairseq-hydra-train can name"
        )
    for name in ("relative_step", "warmup_init"):
        if optimizer == "adafactor" and getattr(flags, name):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{flag} is for rates without --lr, which fairseq always sets: leave it out"
            )


def _check_packages(flags: Namespace) -> None:
    """Refuse what needs a package that is not installed."""
    for flag, is_given, package in (
        (
            "--write-checkpoints-asynchronously",
            getattr(flags, "write_checkpoints_asynchronously", False),
            "iopath",
        ),
        ("--wandb-project", getattr(flags, "wandb_project", None), "wandb"),
        (
            "--ddp-backend fully_sharded",
            getattr(flags, "ddp_backend", None) == "fully_sharded",
            "fairscale",
        ),
    ):
        if is_given and find_spec(package) is None:
            raise UserError(f"{flag} needs {package}: pip install {package}")


def _check_metric(flags: Namespace) -> None:
    """Refuse to look for the best of what is not measured, before an epoch is trained."""
    losses = ("cross_entropy", "label_smoothed_cross_entropy")
    known_loss = str(getattr(flags, "criterion", "")).removesuffix("_in_chunks") in losses
    metric = getattr(flags, "best_checkpoint_metric", None)
    if metric is None or not known_loss or getattr(flags, "task", None) != "translation":
        return
    logged = {"loss", "nll_loss", "ppl"}
    for name, flag in ("bleu", "eval_bleu"), ("accuracy", "report_accuracy"):
        if getattr(flags, flag, False):
            logged.add(name)
        elif metric == name and hasattr(flags, flag):
            raise UserError(f"--best-checkpoint-metric {name} needs --{flag.replace('_', '-')}")
    if metric not in logged:
        raise UserError(
            f"--best-checkpoint-metric {metric}: no such figure; there are "
            f"{', '.join(sorted(logged))}"
        )


def _check_best(flags: Namespace) -> None:
    """Refuse what would keep the worst checkpoint for the best."""
    if not hasattr(flags, "best_checkpoint_metric") or flags.disable_validation:
        return
    metric, highest = flags.best_checkpoint_metric, flags.maximize_best_checkpoint_metric
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


def _check_start(flags: Namespace) -> None:
    """Refuse two places to start a training from."""
    if getattr(flags, "finetune_from_model", None) is None:
        return
    if flags.restore_file != LAST:
        raise UserError(
            "--finetune-from-model starts from weights, --restore-file goes on with a training: "
            "give one of them"
        )
    for name in ("optimizer", "lr_scheduler", "meters", "dataloader"):
        if getattr(flags, f"reset_{name}"):
            flag = name.replace("_", "-")
            raise UserError(f"--finetune-from-model resets that anyway: leave out --reset-{flag}")


def _check_bleu(flags: Namespace) -> None:
    """Refuse what BLEU cannot be measured with, which shows at the first validation else."""
    if not getattr(flags, "eval_bleu", False):
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


def _check_overrides(flags: Namespace) -> None:
    """Refuse what is no dictionary of Python, which fairseq reads late."""
    for name in ("optimizer_overrides", "model_overrides"):
        if (given := getattr(flags, name, None)) is None:
            continue
        try:
            if isinstance(ast.literal_eval(given), dict):
                continue
        except (ValueError, SyntaxError):
            pass
        flag = name.replace("_", "-")
        raise UserError(f"--{flag} {given}: no dictionary of Python, such as \"{{'dropout': 0}}\"")


def _check_search(flags: Namespace) -> None:
    """Refuse searches that end in a traceback at the first sentence."""
    if getattr(flags, "max_len_a", 1) <= 0 and flags.max_len_b < max(1, flags.min_len):
        raise UserError(
            f"--max-len-b {flags.max_len_b} leaves a translation no room: give {flags.min_len} or "
            "more, the --min-len"
        )
    if getattr(flags, "retain_dropout_modules", None) and not flags.retain_dropout:
        raise UserError("--retain-dropout-modules does nothing without --retain-dropout: give both")
    if getattr(flags, "replace_unk", None) == _NO_FILE:
        raise UserError("--replace-unk needs a file: a word and its translation on each line")
    for option in fields(GenerationConfig):
        name, in_steps = option.name, ("iter_decode_", "print_step", "retain_iter_history")
        is_given = getattr(flags, name, option.default) != option.default
        if is_given and name.startswith(in_steps) and flags.task == "translation":
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} is for models that translate in steps of their own")
    if hasattr(flags, "nbest") and flags.bf16:
        raise UserError("--bf16 does nothing in a search of fairseq: leave it out")
    if getattr(flags, "bpe", None) == getattr(flags, "post_process", None) == "sentencepiece":
        raise UserError(
            "--post-process sentencepiece joins what --bpe sentencepiece joins too, and no blanks "
            "would be left: leave it out"
        )
    subwords = getattr(flags, "sentencepiece_model", None)
    is_here = subwords and not PathManager.path_requires_pathmanager(subwords)
    if is_here and not os.path.isfile(subwords):
        raise UserError(f"--sentencepiece-model {subwords}: no such file")
    if (path := getattr(flags, "lm_path", None)) and os.path.isfile(path):
        name = load_checkpoint(path)["cfg"].model._name
        model = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name, object)
        if issubclass(model, FairseqEncoderDecoderModel):
            raise UserError(
                f"--lm-path {path}: a translator ({name}), not a language model of what it writes"
            )


def _check_leaving_out(flags: Namespace) -> None:
    """Refuse flags that leave out a part of the work, or all of it, without a word."""
    shards = getattr(flags, "num_shards", 1), getattr(flags, "shard_id", 0)
    if getattr(flags, "task", None) == "translation" and shards != (1, 0):
        raise UserError(
            "--num-shards and --shard-id do nothing in fairseq, and all is done in each shard: use "
            "'resmlp-mt translate --shard I/N', or torchrun for a training"
        )
    if getattr(flags, "combine_valid_subsets", None) and "," in flags.valid_subset:
        raise UserError(
            f"--combine-valid-subsets joins valid, valid1 ...: give --valid-subset valid with it, "
            f"not {flags.valid_subset}"
        )
    if "," in getattr(flags, "train_subset", ""):
        raise UserError(
            f"--train-subset {flags.train_subset}: name one set; put more beside it as train1, "
            "train2 ..., which are trained on too"
        )
    if getattr(flags, "load_alignments", False) and hasattr(flags, "max_update"):
        alignments = f"{flags.train_subset}.align.*"
        if not any(any(Path(d).glob(alignments)) for d in split_paths(flags.data)):
            raise UserError(
                f"--load-alignments: {flags.data} has no {alignments}: prepare them with "
                "fairseq-preprocess --align-suffix, or leave it out"
            )
    trains = hasattr(flags, "max_update") and not flags.disable_validation
    if trains and flags.train_subset in flags.valid_subset.split(","):
        # Each would take epochs of the other's iterator.
        raise UserError(
            f"--train-subset and --valid-subset have {flags.train_subset}, and fairseq leaves "
            "epochs out: give --disable-validation, or a copy of the set under another name"
        )
    if getattr(flags, "num_batch_buckets", 0):
        try:
            get_buckets([1, 2], flags.num_batch_buckets)
        except TypeError:
            raise UserError(
                "--num-batch-buckets: fairseq's buckets need an older NumPy; leave it out"
            ) from None


def _read_object(flag: str, given: str | None) -> dict:
    try:
        if isinstance(found := json.loads(given or "{}"), dict):
            return found
    except ValueError:
        pass
    raise UserError(f"{flag} {given}: no object in JSON, such as '{{\"beam\": 5}}'")
