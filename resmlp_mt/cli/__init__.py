"""The console command `resmlp-mt`: one small module a subcommand.

What it imports first is not much, since until `main` begins Ctrl-C gives a traceback.
"""

import errno
import os
import signal
import sys

from resmlp_mt.cli import starting
from resmlp_mt.errors import UserError


def main() -> int:
    """Run a subcommand; a user's mistake is one message and status 2."""
    command, *rest = sys.argv[1:] or [""]
    if sys.platform == "win32":
        return _fail(command, "this runs on Linux and macOS; on Windows in WSL: wsl --install")
    starting.start()
    try:
        import logging
        import warnings

        from resmlp_mt.cli import passthrough
        from resmlp_mt.cli.parser import build_parser, rename

        if command in passthrough.PROGRAMS:
            passthrough.run_program(command, rest)
        else:
            words = rename(sys.argv[1:])
            command = " ".join(words[: 2 if words[:1] == ["study"] else 1])
            arguments = build_parser().parse_args(words)
            # Importing fairseq leaves the root logger at DEBUG.
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            warnings.formatwarning = lambda message, *_, **__: f"resmlp-mt {command}: {message}\n"
            # Exit as after an error, so that half-written files are removed.
            signal.signal(signal.SIGTERM, _leave)
            # Under nohup it is ignored.
            if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
                signal.signal(signal.SIGHUP, _leave)
            # A file's name may be no text.
            sys.stdout.reconfigure(errors="backslashreplace")
            status = arguments.run(arguments) or 0
            sys.stdout.flush()
            return status
    except UserError as error:
        return _fail(command, str(error))
    except ModuleNotFoundError as error:
        from resmlp_mt.extras import explain_missing

        if explained := explain_missing(error.name):
            return _fail(command, explained)
        raise
    except KeyboardInterrupt:
        return _fail(command, "interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        _drop_output()  # its reader has gone, as with `| head`: nothing to say
        return 128 + signal.SIGPIPE
    except OSError as error:
        from resmlp_mt.files.output import FULL

        _drop_output()
        if error.errno == errno.EBADF:
            return _fail(command, "standard input or output is closed")
        # A file that cannot be read or written is a user's matter; one that is missing has its own
        # message, or is a bug. A full disk has no name for standard output alone.
        name = error.filename or ("standard output" if error.errno in FULL else None)
        if name is None or error.errno == errno.ENOENT:
            raise
        return _fail(command, f"{name}: {error.strerror}")
    return 0


def _leave(number: int, _) -> None:
    sys.exit(128 + number)


def _drop_output() -> None:
    """Keep Python from failing when it flushes stdout at its exit and cannot write."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(command: str, message: str, status: int = 2) -> int:
    print(f"resmlp-mt {command}: {message}", file=sys.stderr)
    return status
