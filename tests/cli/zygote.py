"""`resmlp-mt` for shell scripts in tests, in forks of one process that has imported fairseq.

A command of a script is a small program that hands its words, folder, environment and standard
streams to that process, waits, and ends with the status of what was done.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from cli.forks import become

NAMES = ("resmlp-mt", "fairseq-train", "fairseq-generate")
CLIENT = """#!{python} -S
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
said = json.dumps([[os.path.basename(sys.argv[0]), *sys.argv[1:]], os.getcwd(), dict(os.environ)])
socket.send_fds(server, [len(said.encode()).to_bytes(8, "big")], [0, 1, 2])
server.sendall(said.encode())
sys.exit(int(server.recv(8) or b"1"))
"""


@cache
def find_commands() -> Path:
    """A folder for PATH with these commands; they work as long as this process does."""
    folder = Path(tempfile.mkdtemp())
    address = str(folder / "address")
    (folder / "bin").mkdir()
    for name in NAMES:
        (folder / "bin" / name).write_text(CLIENT.format(python=sys.executable, address=address))
        (folder / "bin" / name).chmod(0o755)
    here = Path(__file__)
    paths = os.pathsep.join(map(str, (here.parents[2], here.parents[1])))
    server = subprocess.Popen(
        [sys.executable, here, address, str(os.getpid())],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout.readline() == b"ready\n"
    return folder / "bin"


def serve(address: str, parent: int) -> None:
    """Answer until the parent has ended."""
    import fairseq  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(16)
    listener.settimeout(5)
    print("ready", flush=True)
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
    """Run the command of a client in a process of its own, tell its status, and end."""
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
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    client.sendall(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
