"""Commands in forks of one process that has imported fairseq and torch, which takes seconds.

A client hands its words, folder, environment and standard streams to that process, waits, and is
told the status of what was done. Clients are the small programs that `find_command` makes. They
pass on SIGTERM and SIGINT, end by the signal that the command ended by, and take it with them when
they are killed.
"""

import atexit
import gc
import importlib
import json
import logging
import os
import resource
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

# A variable of a script: the folder of find_commands, whose programs it then starts.
FORKS = "COMMANDS_IN_FORKS"
NAMES = ("resmlp-mt", "fairseq-train", "fairseq-generate", "python")
# torch imports _dynamo with its first optimizer. The plugin is not among them: commands of fairseq
# import it by --user-dir.
IMPORTED = ("fairseq", "torch._dynamo")
FILE_SIZE = "RESMLP_TEST_FILE_SIZE"  # the variable of the limit on the size of a file
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
command, address = [os.path.basename(sys.argv[0]), *sys.argv[1:]], {address!r}
if command[:3] == ["python", "-m", "resmlp_mt.cli"]:
    command[:3], address = ["resmlp-mt"], {ours!r}
elif command[0] == "python" and "".join(command[1:2])[:1] in ("", "-"):
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect(address)
said = json.dumps([command, os.getcwd(), dict(os.environ)])
socket.send_fds(server, [len(said.encode()).to_bytes(8, "big")], [0, 1, 2])
server.sendall(said.encode())
answers = server.makefile()
process = int(answers.readline())
def pass_on(number, frame):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, pass_on)
status = int(answers.readline() or "1")
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@cache
def start_server() -> Path:
    """The folder of the server's socket `address`; the server works as long as this process."""
    folder = Path(tempfile.mkdtemp())
    here = Path(__file__)
    paths = os.pathsep.join(map(str, (here.parents[2], here.parents[1])))
    server = subprocess.Popen(
        [sys.executable, here, folder / "address", str(os.getpid())],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert [server.stdout.readline() for _ in range(3)] == 3 * [b"ready\n"]
    return folder


@cache
def find_commands() -> Path:
    """A folder for PATH with these commands."""
    return [find_command(name) for name in NAMES][0].parent


@cache
def find_command(name: str, plugin: bool = True) -> Path:
    """The client that is a console command; "python" starts scripts, with the plugin or without."""
    address = str(start_server() / "address")
    kind = {"resmlp-mt": "-ours", "python": "-scripts"}.get(name, "") if plugin else ""
    path = start_server() / f"bin{'' if plugin else '-plain'}" / name
    path.parent.mkdir(exist_ok=True)
    found = {"address": address + kind, "ours": f"{address}-ours"}
    path.write_text(CLIENT.format(python=sys.executable, **found))
    path.chmod(0o755)
    return path


def serve(address: str, parent: int) -> None:
    """Answer until the parent has ended."""
    for name in IMPORTED:
        importlib.import_module(name)
    # Two more servers, whose forks need not import the plugin. By the name of the program the
    # package tells what it serves.
    for kind, name, module in (
        ("ours", "resmlp-mt", "resmlp_mt.cli"), ("scripts", "script.py", "resmlp_mt")
    ):  # fmt: skip
        if os.fork() == 0:
            address, parent = f"{address}-{kind}", os.getppid()
            sys.argv = [name]
            importlib.import_module(module)
            break
    gc.collect()
    gc.freeze()  # else each fork would look through what it has of us, and copy it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    # A test run in the background passes on that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(16)
    listener.settimeout(5)
    os.write(1, b"ready\n")  # at once, since three servers write there
    while os.getppid() == parent:
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
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
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    wanted, said = int.from_bytes(size, "big"), b""
    while len(said) < wanted:
        said += client.recv(wanted - len(said))
    command, cwd, environment = json.loads(said)
    process = os.fork()
    if process == 0:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        status = 1
        try:
            become(command, cwd, environment)
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
        client.sendall(f"{process}\n".encode())
    ended = os.pidfd_open(process)
    if ended not in select.select([ended, client], [], [])[0]:  # a client says no more: it is gone
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        client.sendall(f"{status}\n".encode())
    os._exit(0)


def become(command: list[str], cwd: str, environment: dict) -> None:
    """Be that command, with the standard streams of this process."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    if size := os.environ.pop(FILE_SIZE, None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    if command[0] == "resmlp-mt":
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as the import of the package does
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=bool(environment.get("PYTHONUNBUFFERED")))
    os.chdir(cwd)
    name, *arguments = command
    logging.root.handlers.clear()  # which fairseq made as it was imported
    logging.root.setLevel(logging.WARNING)
    try:
        if name == "resmlp-mt":
            sys.argv = [name, *arguments]
            runpy.run_module("resmlp_mt.cli", run_name="__main__", alter_sys=True)
        elif name == "python":
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).parent))
            if FORKS in environment:
                sys.executable = str(Path(environment[FORKS], name))
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            sys.argv = [str(Path(sys.executable).with_name(name)), *arguments]
            runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
