"""Commands in forks of one process that has imported fairseq and torch, which takes seconds.

A client hands its words, folder, environment and standard streams to that process, waits, and is
told the status of what was done. Clients are the small programs of `find_commands`. They pass on
SIGTERM and SIGINT, end by the signal that the command ended by, and take it with them when they
are killed.
"""

import atexit
import gc
import importlib
import json
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

# Of "python", the scripts.
NAMES = """python resmlp-mt fairseq-train fairseq-generate fairseq-interactive fairseq-validate
    fairseq-preprocess fairseq-hydra-train ct2-fairseq-converter ct2-opus-mt-converter""".split()
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
name, words = os.path.basename(sys.argv[0]), sys.argv
if name == "python" and words[1:3] == ["-m", "resmlp_mt.cli"]:
    name, words = "resmlp-mt", ["resmlp-mt", *words[3:]]
elif name == "python" and "".join(words[1:2])[:1] in ("", "-"):
    os.execv(sys.executable, [sys.executable, *words[1:]])
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r} + "-ours" * (not name.startswith("fairseq")))
said = json.dumps([words, os.getcwd(), dict(os.environ)])
socket.send_fds(server, [said.encode()], [0, 1, 2])
process = int(server.recv(99))
def pass_on(number, frame):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, pass_on)
status = int(server.recv(99) or 1)
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@cache
def find_commands() -> Path:
    """A folder for PATH with these commands, whose server works as long as this process."""
    folder, here = Path(tempfile.mkdtemp()), Path(__file__)
    paths = os.pathsep.join(map(str, (here.parents[2], here.parents[1])))
    server = subprocess.Popen(
        [sys.executable, here, folder / "address", str(os.getpid())],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with server.stdout as said:
        assert [said.readline() for _ in range(2)] == 2 * [b"ready\n"]
    (folder / "bin").mkdir()
    for name in NAMES:
        path = folder / "bin" / name
        path.write_text(CLIENT.format(python=sys.executable, address=str(folder / "address")))
        path.chmod(0o755)
    return folder / "bin"


def serve(address: str, parent: int) -> None:
    """Answer until the parent has ended."""
    for name in ("fairseq", "torch._dynamo"):  # the latter comes with torch's first optimizer
        importlib.import_module(name)
    # fairseq's commands import the plugin by --user-dir. Others are forks of a second server, which
    # has it; by the name of its program the package tells what it serves.
    if os.fork() == 0:
        address, parent, sys.argv = f"{address}-ours", os.getppid(), ["resmlp-mt"]
        importlib.import_module("resmlp_mt.cli")
    gc.collect()
    gc.freeze()  # else each fork would look through what it has of us, and copy it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    # A test run in the background passes on that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(16)
    listener.settimeout(5)
    os.write(1, b"ready\n")  # at once, since two servers write there
    while os.getppid() == parent:
        with suppress(TimeoutError):
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(client)
            client.close()


def _answer(client: socket.socket) -> None:
    """Run the command of a client in a process of its own, tell its id, its status, and end.

    It is killed where the client is.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    client.settimeout(None)
    said, streams, _, _ = socket.recv_fds(client, 2**20, 3)
    process = os.fork()
    if process == 0:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        status = 1
        try:
            become(*json.loads(said))
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        finally:  # as an interpreter ends, but for taking everything apart
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    with suppress(BrokenPipeError):
        client.send(str(process).encode())
    ended = os.pidfd_open(process)
    if ended not in select.select([ended, client], [], [])[0]:  # a client says no more: it is gone
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        client.send(str(status).encode())
    os._exit(0)


def become(command: list[str], cwd: str, environment: dict) -> None:
    """Be that command, of which the first word is a client, with the streams of this process."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update({"ORT_DISABLE_TELEMETRY": "1"} | environment)  # as the package sets it
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=bool(environment.get("PYTHONUNBUFFERED")))
    os.chdir(cwd)
    logging.root.handlers.clear()  # which fairseq made as it was imported
    logging.root.setLevel(logging.WARNING)
    client, *arguments = command
    name = Path(client).name
    sys.argv = [str(Path(sys.executable).with_name(name)), *arguments]
    if name == "python":
        sys.argv, sys.executable = arguments, client  # what it starts is a fork too
        sys.path.insert(0, str(Path(arguments[0]).parent))
    try:
        if name == "resmlp-mt":
            runpy.run_module("resmlp_mt.cli", run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
