"""Numbers out of range, and texts that are none of what a flag takes."""

import math

from resmlp_mt.compat.flags.given import Flags, read_literal
from resmlp_mt.errors import UserError, name_flag

# Where numbers begin and end. Beyond, fairseq and torch end in a traceback, some of them late, or
# train what is none.
_RANGES = {
    (1, math.inf): "update_freq max_tokens batch_size log_interval save_interval validate_interval "
    "beam",
    (0, math.inf): "lr num_workers seed warmup_updates weight_decay adam_eps",
    (0, 1): "label_smoothing ema_decay",
}
_BETAS = ("adam_betas", "adamax_betas", "lamb_betas")


def check_numbers(flags: Flags) -> None:
    """Refuse numbers out of range."""
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
        if isinstance(given := getattr(flags, name), str) and not _are_betas(read_literal(given)):
            raise UserError(
                f"{name_flag(name)} {given}: give two numbers from 0 to below 1, as '(0.9, 0.98)'"
            )


def _are_betas(value: object) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in value)
    )


def check_overrides(flags: Flags) -> None:
    """Refuse what is no dictionary of Python, which fairseq reads late."""
    for name in ("optimizer_overrides", "model_overrides"):
        given = getattr(flags, name)
        if given is not None and not isinstance(read_literal(given), dict):
            raise UserError(
                f"{name_flag(name)} {given}: no dictionary of Python, such as \"{{'dropout': 0}}\""
            )
