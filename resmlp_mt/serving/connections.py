"""Connections: how many there may be, how long they may be idle, and which of them goes first.

uvicorn answers 503 to all while its limit is reached, whoever holds the connections. Here the one
that has kept the server waiting longest makes room for the next.
"""

import asyncio
import json
import time
from collections import defaultdict

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds for the head of a request, which is mostly one small packet.
HEAD_SECONDS = 10
# Bytes of requests and answers that may wait for slow clients, of all connections together.
HELD_BYTES = 100_000_000
_SWEEP_SECONDS = 0.25

_BUSY = json.dumps({"error": "too many connections; try again"}).encode()
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_BUSY), _BUSY)
)


class Connection(H11Protocol):
    """A connection that knows since when the server waits for its client.

    `crowd` are all connections of the server.
    """

    crowd: "Crowd"

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin, if there is room."""
        super().connection_made(transport)
        self.waits_since, self.arrived = time.monotonic(), 0
        if not self.crowd.enter(self):
            transport.write(_REFUSAL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.is_idle and not self.conn.trailing_data[0]:
            self.waits_since, self.arrived = time.monotonic(), 0  # the first byte of a request
        self.arrived += len(data)
        super().data_received(data)

    def pause_writing(self) -> None:
        """Wait until the client has read."""
        super().pause_writing()
        self.waits_since = time.monotonic()

    def on_response_complete(self) -> None:
        """Wait until the client has read, and asks again."""
        self.waits_since, self.arrived = time.monotonic(), 0
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether there is no request, or not yet the whole head of one."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def unread(self) -> int:
        """Bytes that the client has not read."""
        return self.transport.get_write_buffer_size()

    @property
    def held(self) -> int:
        """Bytes that are kept while the client is waited for."""
        # Once a request is answered, what still comes of it is dropped.
        arrives = not self.is_idle and self.cycle.more_body and not self.cycle.response_started
        return self.unread + (self.arrived if arrives else 0)

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn: to ask, to send the rest, or to read."""
        return self.is_idle or self.cycle.more_body or self.flow.write_paused


class Crowd:
    """All connections of a server.

    Args:
        most: How many there may be.
        most_per_client: How many from one address.
        read_seconds: Time to read an answer.
    """

    def __init__(self, most: int, most_per_client: int, read_seconds: float):
        self.most, self.most_per_client = most, most_per_client
        self.read_seconds = read_seconds
        self.all: set[Connection] = set()
        self.by_client: dict[str, set[Connection]] = defaultdict(set)

    def enter(self, new: Connection) -> bool:
        """Let a connection in, if there is room; another may have to go for it."""
        neighbours = self.by_client[_address(new)]
        for crowd, most in ((neighbours, self.most_per_client), (self.all, self.most)):
            if len(crowd) >= most and not self._drop_first(crowd):
                return False
        self.all.add(new)
        self.by_client[_address(new)].add(new)
        return True

    def leave(self, connection: Connection) -> None:
        """Forget a connection; nothing if it is not known."""
        self.all.discard(connection)
        self.by_client[_address(connection)].discard(connection)
        if not self.by_client[_address(connection)]:
            del self.by_client[_address(connection)]

    async def watch(self) -> None:
        """End connections that keep the server waiting too long, or too much; forever."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep(time.monotonic())

    def sweep(self, now: float) -> None:
        """End those that have kept the server waiting too long by now, and what is too much."""
        # A request that does not arrive in time is answered, by `LimitBody`.
        for connection in [c for c in self.all if c.is_idle or c.unread]:
            patience = self.read_seconds if connection.unread else HEAD_SECONDS
            if connection.is_waiting and now - connection.waits_since > patience:
                self._drop(connection)
        holding = sorted((c for c in self.all if c.held), key=lambda c: c.waits_since)
        held = sum(c.held for c in holding)
        for connection in holding:
            if held > HELD_BYTES and connection.is_waiting:
                held -= connection.held
                self._drop(connection)

    def _drop_first(self, connections: set[Connection]) -> bool:
        waiting = [c for c in connections if c.is_waiting]
        if waiting:
            # Those without a request lose nothing.
            self._drop(min(waiting, key=lambda c: (not c.is_idle or c.unread > 0, c.waits_since)))
        return bool(waiting)

    def _drop(self, connection: Connection) -> None:
        self.leave(connection)
        connection.transport.abort()


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""
