"""nginx, by the configuration of examples/serve, before a real service."""

import re
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from serving.conftest import serving

from resmlp_mt.compat.workers import find_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONFIGURATION = Path(__file__).parents[2] / "examples" / "serve" / "nginx.conf"
pytestmark = pytest.mark.skipif(not NGINX, reason="there is no nginx (Debian: nginx-light)")
BODY = b'{"text": "A man rides a bike."}'
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextmanager
def proxied(address: str, folder: Path):
    """The address of an nginx before a service."""
    text, port = CONFIGURATION.read_text(), find_port()
    for old, new in (
        ("user www-data;\n", ""),
        ("listen 80;", f"listen 127.0.0.1:{port};"),
        ("127.0.0.1:8080", urlsplit(address).netloc),
        ("/run/", f"{folder}/"),
        ("/var/log/nginx/", f"{folder}/"),
        ("http {\n", "http {\n" + "".join(f"{k}_temp_path {folder}/{k};\n" for k in TEMPORARY)),
    ):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    command = [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
    process = subprocess.Popen([*command, "-g", "daemon off;"])
    try:
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait(60)


TEMPORARY = "client_body proxy fastcgi uwsgi scgi".split()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    with serving("multi30k-en-de") as (address, _), proxied(address, folder) as port:
        yield port


def connect(port, sent, source) -> socket.socket:
    """A connection from another address. nginx counts by address: each test has its own."""
    client = socket.create_connection(("127.0.0.1", port), 300, source_address=(source, 0))
    client.sendall(sent)
    return client


def ask(port) -> None:
    """A light client is answered, however long a busy machine takes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1800)
    connection.request("POST", "/translate", BODY, {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200 and b"Mann" in response.read()
    connection.close()


def test_connections_that_send_nothing_keep_nobody_out(port):
    body = HEAD + b"Content-Length: 900000\r\n\r\n" + b" " * 1000
    parts = (b"", HEAD + b"X-", body)
    held = [connect(port, part, "127.0.0.2") for part in parts for _ in range(340)]
    try:
        ask(port)
    finally:
        for client in held:
            client.close()


def test_a_client_with_many_connections_is_told_to_wait_and_others_are_not(port):
    body = b'{"text": [%s], "beam": 10}' % b",".join([b'"A man rides a bike in the snow."'] * 20)
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    held, statuses = [connect(port, request, "127.0.0.3") for _ in range(60)], []

    def read(client):
        statuses.append(re.match(rb"HTTP/1.1 (\d+)", client.recv(100))[1])

    readers = [threading.Thread(target=read, args=[client]) for client in held]
    for reader in readers:
        reader.start()
    ask(port)
    for reader, client in zip(readers, held, strict=True):
        reader.join(1800)
        client.close()
    assert len(statuses) == 60 and set(statuses) == {b"200", b"429"}


def test_the_page_has_the_configuration():
    page = Path(__file__).parents[2] / "docs" / "serve.md"
    assert CONFIGURATION.read_text() in page.read_text()
