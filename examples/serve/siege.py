"""Ask a service with many clients at once while others do it harm, and kill a worker on the way.

python examples/serve/siege.py checkpoints/fast --input corpus/test.en --seconds 600 \
    --csv examples/serve/siege.csv

Starts `resmlp-mt serve MODEL --workers 2`. Of its clients three in four are light: a sentence a
request, whose translation is known. The others send ten sentences, HTML or forms. Each attack comes
from as many more connections: alternatives with the widest beam, a text of newlines, a body that is
no request, and a search that exports do not have. Half way a worker is killed. The exit status is 1
where a light client was answered wrongly, or where one of the goals is missed.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from resmlp_mt.data.reading import read_lines

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from races.report import append_rows, describe_machine, describe_origin  # noqa: E402

SECONDS = 30  # in which a killed worker is to be replaced and busy
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ATTACKS = {
    "alternatives": json.dumps(
        {"text": "the dog and " * 35, "alternatives": True, "beam": 32, "nbest": 32}
    ),
    "newlines": json.dumps({"text": "\n" * 19_000}),
    "brackets": "[" + "[]," * 300_000 + "[]]",
    "ngrams": json.dumps({"text": "A dog and a dog.", "no_repeat_ngram_size": 2}),
}


def main() -> None:
    """Run it, print and append its row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="as for resmlp-mt serve")
    parser.add_argument("--input", type=Path, required=True, help="sentences")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--attackers", type=int, default=8, help="of each kind")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--csv", type=Path, help="where to append the row")
    parser.add_argument("--name", help="what the model is called in the row")
    arguments = parser.parse_args()
    sentences = [line for line in read_lines(arguments.input) if line.strip()]
    command = [sys.executable, "-m", "resmlp_mt.cli", "serve", arguments.model, "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", "2"], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            address, workers = read_address(server, 2)
            siege = Siege(address, sentences, arguments)
            row = {"model": arguments.name or arguments.model} | siege.run(server, workers)
        finally:
            server.terminate()
            threading.Thread(target=server.stderr.read, daemon=True).start()
    print(json.dumps(row), flush=True)
    if arguments.csv:
        append_rows(arguments.csv, [row])
    missed = [*siege.wrong[:5]]
    missed += [f"99% of the light requests took {row['light_p99_ms']} ms"] * siege.is_slow
    missed += [f"busy after {row['busy_s']} s"] * (float(row["busy_s"]) > SECONDS)
    if missed:
        sys.exit("\n".join(missed))


def read_address(server: subprocess.Popen, workers: int) -> tuple[str, list[int]]:
    """Where a service listens, and its workers, once so many are there."""
    said, found = [], []
    for line in server.stderr:
        said.append(line)
        found += re.findall(r"worker (\d+) is translating at (\S+)", line)
        if len(found) == workers:
            return found[0][1], [int(pid) for pid, _ in found]
    sys.exit(f"the service did not start: {''.join(said)}")


class Siege:
    """Clients of a service, and those who do it harm."""

    def __init__(self, address: str, sentences: list[str], arguments: argparse.Namespace):
        self.address, self.sentences, self.arguments = urlsplit(address), sentences, arguments
        self.known: dict[str, bytes] = {}
        self.light: list[float] = []
        self.others: dict[str, int] = {}
        self.wrong: list[str] = []
        self.is_slow, self.ends, self.lock = False, 0.0, threading.Lock()

    def run(self, server: subprocess.Popen, workers: list[int]) -> dict:
        """Besiege the service; returns a row of figures."""
        for sentence in self.sentences[:200]:
            self.known[sentence] = self._ask(self._connect(), json.dumps({"text": sentence}))[1]
        seconds = self.arguments.seconds
        self.ends = time.monotonic() + seconds
        clients = range(self.arguments.clients)
        threads = [threading.Thread(target=self._be_light, args=[i]) for i in clients if i % 4]
        threads += [threading.Thread(target=self._be_mixed, args=[i]) for i in clients if not i % 4]
        for body in ATTACKS.values():
            for _ in range(self.arguments.attackers):
                threads.append(threading.Thread(target=self._attack, args=[body]))
        for thread in threads:
            thread.start()
        memory = []
        for share in (0.1, 0.4):
            time.sleep(share * seconds)
            memory.append(sum(map(read_memory, workers)))
        os.kill(workers[0], signal.SIGKILL)
        killed = time.monotonic()
        _, (new,) = read_address(server, 1)
        replaced, begun = time.monotonic() - killed, read_seconds(new)
        while (is_idle := read_seconds(new) < begun + 1) and time.monotonic() < self.ends:
            time.sleep(0.1)
        busy = np.inf if is_idle else time.monotonic() - killed
        for thread in threads:
            thread.join()
        memory.append(sum(map(read_memory, [workers[1], new])))
        milliseconds = 1000 * np.array(self.light)
        self.is_slow = bool(np.percentile(milliseconds, 99) > 1000)
        return {
            "seconds": seconds,
            "clients": self.arguments.clients,
            "attackers": len(ATTACKS) * self.arguments.attackers,
            "light": len(self.light),
            "light_median_ms": f"{np.median(milliseconds):.1f}",
            "light_p99_ms": f"{np.percentile(milliseconds, 99):.1f}",
            "light_most_ms": f"{milliseconds.max():.1f}",
            "wrong": len(self.wrong),
            "other_answers": " ".join(f"{k}:{n}" for k, n in sorted(self.others.items())),
            "replaced_s": f"{replaced:.1f}",
            "busy_s": f"{busy:.1f}",
            "memory_first_mib": f"{memory[0]:.0f}",
            "memory_half_mib": f"{memory[1]:.0f}",
            "memory_mib": f"{memory[2]:.0f}",
            **describe_origin(describe_machine()),
        }

    def _connect(self) -> HTTPConnection:
        return HTTPConnection(self.address.hostname, self.address.port, timeout=120)

    def _ask(self, connection, body: str, headers=JSON) -> tuple[int, bytes]:
        connection.request("POST", "/translate", body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _be_light(self, number: int) -> None:
        chance, connection = random.Random(number), self._connect()
        texts = list(self.known)
        while (start := time.monotonic()) < self.ends:
            text = chance.choice(texts)
            try:
                status, found = self._ask(connection, json.dumps({"text": text}))
            except (OSError, HTTPException):  # its worker was killed
                connection = self._connect()
                continue
            if status != 200 or read_text(found) != read_text(self.known[text]):
                self.wrong.append(f"{status} {found[:200]!r} of {text!r}")
            self.light.append(time.monotonic() - start)

    def _be_mixed(self, number: int) -> None:
        chance, connection = random.Random(number), self._connect()
        known = {"source": "auto", "target": "de"}
        while time.monotonic() < self.ends:
            texts = chance.sample(self.sentences, 10)
            html = "".join(f"<p>A <b>dog</b>: {text}</p>" for text in texts)
            self._count(
                connection,
                *chance.choice(
                    [
                        (json.dumps({"text": texts}), JSON),
                        (json.dumps({"q": html, "format": "html"} | known), JSON),
                        (urlencode({"q": texts[0], "alternatives": 3} | known), FORM),
                    ]
                ),
            )

    def _attack(self, body: str) -> None:
        connection = self._connect()
        while time.monotonic() < self.ends:
            self._count(connection, body)

    def _count(self, connection, body: str, headers=JSON) -> None:
        try:
            name = str(self._ask(connection, body, headers)[0])
        except (OSError, HTTPException):
            connection.close()
            name = "broken"
        with self.lock:
            self.others[name] = self.others.get(name, 0) + 1
        if name == "429":
            time.sleep(0.1)


def read_text(found: bytes) -> str:
    """The translation in an answer; its score may differ in the last digit."""
    return json.loads(found)["results"][0]["translations"][0]["text"]


def read_memory(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) / 1024


def read_seconds(pid: int) -> float:
    """The processor time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
