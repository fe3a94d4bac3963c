"""Where to compute."""

import torch

from resmlp_mt.errors import UserError


def choose_device(device: str) -> str:
    """The device of that name; "auto" is the accelerator, or the CPU where there is none.

    Raises:
        UserError: If there is no such device.
    """
    if device == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return str(accelerator) if accelerator else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {device}: {str(error).splitlines()[0]}") from None
    return device
