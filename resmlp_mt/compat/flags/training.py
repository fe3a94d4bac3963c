"""What a training starts from, and how it goes on: schedules, optimizers and packages."""

from importlib.util import find_spec

from resmlp_mt.compat.flags.given import Flags, read_literal
from resmlp_mt.errors import UserError, name_flag
from resmlp_mt.files.finding import LAST


def check_schedule(flags: Flags) -> None:
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
    rates = read_literal(given.replace(" ", ""))
    if not (isinstance(rates, dict) and all(isinstance(key, str) for key in rates)):
        raise UserError(
            f"{flag} {given}: give rates with their keys in quotes, as \"{{'1-9': 1e-3}}\""
        )


def mend_schedule(flags: Flags) -> None:
    """Give a polynomial decay the length that fairseq promises."""
    if flags.lr_scheduler == "polynomial_decay" and flags.total_num_update is None:
        flags.total_num_update = flags.max_update or 0


def check_optimizer(flags: Flags) -> None:
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


def check_packages(flags: Flags) -> None:
    """Refuse what needs a package that is not installed."""
    sharded = "--ddp-backend fully_sharded"
    for package, flag, is_given in (
        ("iopath", "--write-checkpoints-asynchronously", flags.write_checkpoints_asynchronously),
        ("wandb", "--wandb-project", flags.wandb_project),
        ("fairscale", sharded, flags.ddp_backend == "fully_sharded"),
    ):
        if is_given and find_spec(package) is None:
            raise UserError(f"{flag} needs {package}: pip install {package}")


def check_start(flags: Flags) -> None:
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
