"""The server process: a socket, and an end that loses no request."""

import asyncio
import socket

import uvicorn

# While the server ends, connections that are open may still send a request for so long.
_LINGER = 0.5
# An open connection costs a file; beyond these, uvicorn answers with 503.
_CONNECTIONS = 1000


def listen(host: str, port: int) -> socket.socket:
    """A socket at that address, before anything slow happens.

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
    listener.listen(_CONNECTIONS)
    return listener


def serve(app, listener: socket.socket) -> None:
    """Answer until SIGTERM or SIGINT, then answer what came before, and return."""
    config = uvicorn.Config(app, log_level="warning", limit_concurrency=_CONNECTIONS)
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn closes connections whose request is still on its way: answer those first, and tell
        # the clients that it is the last time.
        for server in self.servers:
            server.close()
        self.server_state.default_headers.append((b"connection", b"close"))
        await asyncio.sleep(_LINGER)
        await super().shutdown(sockets)
