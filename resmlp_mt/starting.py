"""What the command `resmlp-mt` does before its slow imports, and no program that imports us."""

import os
import signal
import sys
from pathlib import Path


def is_our_command() -> bool:
    """Whether this process is `resmlp-mt` or `python -m resmlp_mt.cli`."""
    return Path(sys.argv[0]).name == "resmlp-mt" or "resmlp_mt.cli" in sys.orig_argv


def start() -> None:
    """Let Ctrl-C end the process at once, and closed standard streams fail when they are used."""
    # As an exception, some import on the way would swallow it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    wrong_way = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, way) in enumerate(wrong_way.items()):
        if getattr(sys, name) is None:  # or else the next file would be opened in its place
            opened = os.open(os.devnull, way)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def hear_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, so that half-written files are cleared away."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame) -> None:
    os._exit(128 + number)
