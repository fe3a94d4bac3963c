"""The first steps of the command `resmlp-mt`."""

import os
import signal
import sys
from types import FrameType


def start() -> None:
    """Let Ctrl-C end slow imports at once, and closed standard streams fail when they are used."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    wrong_way = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, way) in enumerate(wrong_way.items()):
        if getattr(sys, name) is None:  # or else the next file would be opened in its place
            opened = os.open(os.devnull, way)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_importing(frame):  # some imports swallow any exception
        if output := sys.modules.get("resmlp_mt.files.output"):
            output.abandon()
        # Not print: what was interrupted may hold the stream's lock.
        os.write(2, f"resmlp-mt {' '.join(sys.argv[1:2])}: interrupted\n".encode())
        os._exit(128 + number)
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
