"""An attempt at a hostile file, shut in a process of its own, with limits and a watch."""

import contextlib
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from babel import Locale

from resmlp_mt.engines.kernels.library import find_library
from resmlp_mt.errors import UserError

# What an attempt may take beyond what this process has.
_MEMORY = 2 * 2**30
_FINE = ("accepted", "refused")
# Python's audit events of code that gets out; those of _CHANGES name a path, which counts only
# outside of the attempt's folder.
_GETS_OUT = (
    "os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn subprocess.Popen "
    "socket.connect socket.bind socket.getaddrinfo ctypes.dlopen pickle.find_class os.kill"
).split()
_CHANGES = (
    "os.mkdir os.remove os.rename os.rmdir os.symlink os.link os.chmod os.chown os.truncate"
).split()
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Outcome(NamedTuple):
    """How an attempt ended: "accepted", "refused" (a `UserError`), or what is wrong."""

    verdict: str
    detail: str

    @property
    def fine(self) -> bool:
        """Whether that is how it should end."""
        return self.verdict in _FINE


def attempt(use: Callable[[], None], folder: Path, seconds: float = 20) -> Outcome:
    """Run `use` in a forked process.

    Args:
        use: Opens and uses the hostile files.
        folder: Where it may write.
        seconds: Time after which it hangs.

    Returns:
        Beside what is fine "exception", "crash" (a signal), "hang", "memory" or "code", which
        means that something was run, or written outside of the folder.
    """
    folder = folder.resolve()
    output = folder / "output.txt"
    before = _peak_memory(resource.getrusage(resource.RUSAGE_SELF))
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        _run(use, folder, output, writer)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer, hangs = b"", False
        deadline = time.monotonic() + seconds
        while not hangs:
            ready, _, _ = select.select([stream], [], [], max(deadline - time.monotonic(), 0))
            hangs = not ready
            if ready and not (chunk := os.read(reader, 2**16)):
                break
            answer += chunk if ready else b""
    if hangs:
        # Tells faulthandler to write down where it is.
        os.kill(process, signal.SIGUSR1)
        time.sleep(0.2)
        os.kill(process, signal.SIGKILL)
    _, status, usage = os.wait4(process, 0)
    said = output.read_text(errors="replace")[-4000:] if output.exists() else ""
    if hangs:
        return Outcome("hang", f"longer than {seconds:g} s\n{said}")
    if not answer:
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
        return Outcome("crash", f"{how}\n{said}")
    outcome = Outcome(*json.loads(answer))
    grown = _peak_memory(usage) - before
    if outcome.fine and grown > _MEMORY / 2:
        return Outcome("memory", f"{grown / 2**20:,.0f} MiB more ({outcome.detail})")
    return outcome


def _run(use: Callable[[], None], folder: Path, output: Path, writer: int) -> None:
    """Use the files and report; does not return."""
    try:
        said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.enable(said)
        faulthandler.register(signal.SIGUSR1, said)
        limit = _virtual_memory() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        tempfile.tempdir = str(folder)
        os.chdir(folder)
        find_library()  # our own, which an export's search would load
        for language in ("en", "de"):  # Babel's own data, which are pickles
            Locale.parse(language).number_symbols  # noqa: B018
        caught = _watch(folder)
        verdict = _judge(use)
        if caught:
            verdict = Outcome("code", "\n".join(caught))
        os.write(writer, json.dumps(verdict).encode())
    finally:
        os._exit(0)


def _judge(use: Callable[[], None]) -> Outcome:
    try:
        use()
    except MemoryError:
        return Outcome("memory", traceback.format_exc())
    except UserError as error:
        context, text = error, ""
        while context := context.__context__:
            text += f"{type(context).__name__}: {context}\n"
        if "MemoryError" in text or "bad allocation" in text or "bad_alloc" in text:
            return Outcome("memory", f"{error}\n{text}"[-8000:])
        return Outcome("refused", str(error))
    except BaseException:
        return Outcome("exception", traceback.format_exc()[-8000:])
    return Outcome("accepted", "")


def _watch(folder: Path) -> list[str]:
    """Begin to note what gets out of the folder, or is run."""
    caught: list[str] = []

    def outside(path) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        path = os.path.realpath(os.fsdecode(path))
        return path != os.devnull and not f"{path}/".startswith(f"{folder}/")

    def hook(event: str, arguments: tuple) -> None:
        if event == "open":
            path, _, flags = arguments
            bad = isinstance(flags, int) and flags & _WRITES and outside(path)
        elif event == "exec":
            source = getattr(arguments[0], "co_filename", "")
            bad = not (source.startswith("<") or os.path.exists(source))
        else:
            bad = event in _GETS_OUT or (event in _CHANGES and outside(arguments[0]))
        if bad:
            with contextlib.suppress(Exception):
                caught.append(f"{event} {arguments!r:.300}")
                caught.extend(traceback.format_stack(limit=12))

    sys.dont_write_bytecode = True  # Python's own writing, of what was never imported before
    sys.addaudithook(hook)
    return caught


def _peak_memory(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * 1024


def _virtual_memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
