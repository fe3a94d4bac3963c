"""Commands in forks of a process that has imported fairseq and torch, which takes seconds."""

import logging
import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["fairseq"])  # not the plugin: each imports it as it is loaded


def be(command: list[str], folder: Path, cwd, environment: dict) -> None:
    """Be that command, with `folder/0` for its stdin, `1` and `2` for what it writes."""
    for number in range(3):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        os.dup2(os.open(folder / str(number), flags), number)
    become(command, cwd, environment)


def become(command: list[str], cwd, environment: dict) -> None:
    """Be that command, with the standard streams of this process."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    if cwd:
        os.chdir(cwd)
    name, *arguments = command
    try:
        if name == "resmlp-mt":
            sys.argv = [name, *arguments]
            runpy.run_module("resmlp_mt.cli", run_name="__main__", alter_sys=True)
        elif name == "python":
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).parent))
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            sys.argv = [str(Path(sys.executable).with_name(name)), *arguments]
            logging.root.handlers.clear()  # fairseq's programs make theirs before they import it
            runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def run_fork(command: list[str], stdin: bytes, cwd, environment: dict) -> tuple[int, bytes, bytes]:
    """Run a console command or a script: its status, what it wrote to stdout and to stderr."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "0").write_bytes(stdin)
        process = FORKS.Process(target=be, args=(command, folder, cwd, dict(environment)))
        process.start()
        process.join(1800)  # what hangs, whatever else the machine does
        process.kill()
        process.join()
        return process.exitcode, *((folder / stream).read_bytes() for stream in "12")
