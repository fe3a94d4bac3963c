"""The server process: a socket, and an end that loses no request."""

import asyncio
import math
import socket
import time
from types import FrameType

import uvicorn

from resmlp_mt.serving.connections import Connection, Crowd
from resmlp_mt.serving.limits import Limits

try:
    import resource
except ModuleNotFoundError:  # on Windows
    resource = None

# A connection without a request is kept for so long.
KEEP_ALIVE_SECONDS = 5
# Connections that wait to be accepted.
_BACKLOG = 1000
# Files that are open besides connections.
_OWN_FILES = 100


def listen(host: str, port: int) -> socket.socket:
    """Open a socket at an address, before anything slow happens.

    Raises:
        OSError: If that is not possible.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    # Not `socket.create_server`, which leaves the protocol out: asyncio then does not set
    # TCP_NODELAY, and answers wait 40 ms for an acknowledgement.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    listener.listen(_BACKLOG)
    return listener


def allow_files(connections: int) -> None:
    """Let the process hold so many connections open, and its own files.

    Raises:
        ValueError: If the system does not.
    """
    if resource is None:  # and no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OWN_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ValueError(f"this process may open {hard} files, and has {_OWN_FILES} of its own")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class Server(uvicorn.Server):
    """Answers until SIGTERM or SIGINT, then answers what came before; a second one ends at once.

    Args:
        app: What answers.
        limits: How many connections there may be, and how long they may take.
    """

    def __init__(self, app, limits: Limits):
        crowd = Crowd(limits.connections, limits.connections_per_client, limits.timeout)
        config = uvicorn.Config(
            app,
            http=type("Connection", (Connection,), {"crowd": crowd}),
            ws="none",
            log_level="error",
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            # A request may have as long to arrive, to be translated, and to be read.
            timeout_graceful_shutdown=math.ceil(3 * limits.timeout),
        )
        super().__init__(config)
        self.crowd, self.unanswered = crowd, 0
        self.heeds_signals = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin."""
        await super().startup(sockets)
        self.watching = asyncio.create_task(self.crowd.watch())

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, as a signal asks."""
        if self.heeds_signals:
            self.end()

    def end(self) -> None:
        """End. When called again, end without waiting."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what came before, and end."""
        # uvicorn would close idle connections at once, though a client may be about to ask. Here it
        # still gets an answer, which says that it is the last. A connection that stays idle is
        # closed as always.
        for server in self.servers:
            server.close()
        last = [*self.server_state.default_headers, (b"connection", b"close")]
        self.server_state.default_headers = last
        for connection in self.crowd.all:
            if connection.cycle is not None:  # a request keeps the headers from its arrival
                connection.cycle.default_headers = last
        patience = time.monotonic() + KEEP_ALIVE_SECONDS
        while self.crowd.all and time.monotonic() < patience and not self.force_exit:
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)
        self.watching.cancel()
        if self.force_exit:
            left = list(self.server_state.tasks)
            self.unanswered = len(left)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            # Let threads that compute finish before the process ends.
            await self.lifespan.shutdown()
