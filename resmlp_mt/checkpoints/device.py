"""The device to compute on."""

import torch

from resmlp_mt.errors import UserError


def choose_device(device: str) -> str:
    """The device of that name; "auto" is the accelerator, or the CPU where there is none.

    Raises:
        UserError: If there is no such device.
    """
    if device == "auto":
        return find_accelerator() or "cpu"
    try:
        torch.device(device)
    except RuntimeError:  # which lists twenty kinds of hardware
        raise UserError(
            f"device {device}: none of that name; take auto, cpu, cuda or mps"
        ) from None
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0]
        raise UserError(f"device {device}: {reason}; take auto or cpu") from None
    return device


def find_accelerator() -> str | None:
    """The accelerator of this computer, if torch is built for it and it is there."""
    # Not `current_accelerator(check_available=True)`, which torch 2.6 does not know.
    return (
        str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else None
    )
