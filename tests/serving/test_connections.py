"""Connections that keep the server waiting, with a translator that answers when it is told to."""

import json
import socket
import threading
import time
from http.client import HTTPConnection

import pytest
from serving.held import Held, held_models

from resmlp_mt.serving import connections
from resmlp_mt.serving import server as server_module
from resmlp_mt.serving.app import build_app
from resmlp_mt.serving.limits import Limits
from resmlp_mt.serving.server import Server, listen


class Running:
    """A server in a thread of this process."""

    def __init__(self, **limits):
        self.translator, limits = Held(), Limits(**limits)
        self.server = Server(build_app(held_models(self.translator), limits), limits)
        self.listener, self.clients = listen("127.0.0.1", 0), []
        self.address = self.listener.getsockname()
        self.thread = threading.Thread(target=self.server.run, args=[[self.listener]])
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def connect(self, sent=b"") -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(self.address)
        client.sendall(sent)
        self.clients.append(client)
        return client

    def ask(self, **body) -> socket.socket:
        body = json.dumps(body).encode()
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return self.connect(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def wait_for(self, count, state) -> None:
        """Until so many connections are in a state."""
        while sum(map(state, list(self.server.crowd.all))) < count:
            time.sleep(0.01)

    def is_well(self) -> bool:
        client = HTTPConnection(*self.address, timeout=60)
        client.request("GET", "/healthz")
        well = client.getresponse().status == 200
        client.close()
        return well

    def sweep(self, seconds) -> None:
        """What is swept out when so many seconds have passed."""
        crowd, swept = self.server.crowd, threading.Event()

        def sweep():
            crowd.sweep(time.monotonic() + seconds)
            swept.set()

        self.server.watching.get_loop().call_soon_threadsafe(sweep)
        assert swept.wait(60)

    def end(self):
        self.translator.let_go.set()
        self.server.should_exit = True
        for client in self.clients:
            client.close()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def running():
    """running(**limits): a server with them."""
    started = []

    def start(**limits):
        started.append(Running(**limits))
        return started[-1]

    yield start
    for server in started:
        server.end()


def read(client) -> bytes:
    """All until the end, however it ends."""
    found = b""
    try:
        while data := client.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-"
HALF_BODY = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"


@pytest.mark.parametrize("limit", ["connections", "connections_per_client"])
def test_connections_without_a_request_make_room_for_new_ones(running, limit):
    server = running(**{limit: 3})
    busy = server.ask(text="busy")
    server.translator.at_work.acquire(timeout=60)
    half = server.connect(HALF_BODY)
    server.wait_for(2, lambda c: not c.is_idle)
    first, second = server.connect(HALF_HEAD), server.connect()
    assert read(first) == b"" and server.is_well() and read(second) == b""
    assert server.is_well() and server.is_well()
    server.connect(HALF_HEAD)
    server.connect()
    server.translator.let_go.set()
    assert busy.recv(12) == b"HTTP/1.1 200"
    half.sendall(b'"text":1}')
    assert half.recv(12) == b"HTTP/1.1 422"


def test_connections_at_work_are_kept_and_new_ones_are_told(running):
    server = running(connections=2)
    busy = [server.ask(text=f"busy {i}") for i in range(2)]
    server.translator.at_work.acquire(timeout=60)
    server.wait_for(2, lambda c: not c.is_waiting)
    refused = read(server.connect())
    assert refused.startswith(b"HTTP/1.1 503") and b'{"error": "too many connections' in refused
    server.translator.let_go.set()
    assert [client.recv(12) for client in busy] == [b"HTTP/1.1 200"] * 2
    assert server.is_well()


def test_a_head_has_to_come_in_time_and_a_translation_may_take_longer(running):
    server = running()
    slow, idle, busy = server.connect(HALF_HEAD), server.connect(), server.ask(text="busy")
    server.translator.at_work.acquire(timeout=60)
    server.wait_for(1, lambda c: c.arrived == len(HALF_HEAD))
    server.sweep(0)
    assert len(server.server.crowd.all) == 3
    server.sweep(connections.HEAD_SECONDS + 1)
    assert read(slow) == read(idle) == b""
    server.translator.let_go.set()
    assert busy.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("too", ["long", "much"])
def test_answers_that_nobody_reads_are_dropped(running, monkeypatch, too):
    server = running(timeout=60)
    server.translator.let_go.set()
    client = server.ask(text="x" * 250_000, beam=32, nbest=32)
    server.wait_for(1, lambda c: c.unread > 0)
    assert server.is_well()
    if too == "much":
        monkeypatch.setattr(connections, "HELD_BYTES", 1_000_000)
    server.sweep(61 if too == "long" else 1)
    assert 0 < len(read(client)) < 8_000_000 and not server.server.crowd.all


def test_requests_that_arrive_slowly_hold_a_bounded_memory(running, monkeypatch):
    server = running()
    half = HALF_BODY.replace(b"10", b"100000") + b" " * 50_000
    first, second = server.connect(half), server.connect(half)
    server.wait_for(2, lambda c: c.held > 50_000)
    monkeypatch.setattr(connections, "HELD_BYTES", 60_000)
    server.sweep(0)
    assert len(server.server.crowd.all) == 1 and server.is_well()
    first.close(), second.close()


def test_an_open_connection_may_ask_once_more_while_the_server_ends(running, monkeypatch):
    monkeypatch.setattr(server_module, "KEEP_ALIVE_SECONDS", 60)
    server = running()
    busy = server.ask(text="busy")
    server.translator.at_work.acquire(timeout=60)
    # uvicorn makes a new list each second.
    server.server.server_state.default_headers = [*server.server.server_state.default_headers]
    client = HTTPConnection(*server.address, timeout=60)
    for last in (False, True):
        client.request("GET", "/healthz")
        response = client.getresponse()
        assert response.status == 200 and response.read()
        assert response.headers["Connection"] == ("close" if last else None)
        server.server.should_exit = True
        while server.server.servers[0].is_serving():
            time.sleep(0.01)
        with pytest.raises(ConnectionRefusedError):
            server.connect()
    server.translator.let_go.set()
    assert b"connection: close" in read(busy).lower()
    server.thread.join(60)
    assert not server.thread.is_alive()
