"""What is measured after an epoch, and which checkpoint is kept for the best."""

import difflib
import json
from dataclasses import fields

from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.dataclass.configs import GenerationConfig

from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.errors import UserError, name_flag, name_some

# Figures of which the best is the highest, and the lowest.
_HIGHEST = ("bleu", "accuracy", "top1", "top5")
_LOWEST = ("loss", "nll_loss", "ppl")


def check_metric(flags: Flags) -> None:
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


def check_best(flags: Flags) -> None:
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


def check_bleu(flags: Flags) -> None:
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


def _read_object(flag: str, given: str | None) -> dict:
    try:
        if isinstance(found := json.loads(given or "{}"), dict):
            return found
    except ValueError:
        pass
    raise UserError(f"{flag} {given}: no object in JSON, such as '{{\"beam\": 5}}'")
