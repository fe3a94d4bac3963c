"""Ask a server for translations with many clients at once, and count.

python examples/serve/load.py checkpoints/fast --input corpus/test.en --csv examples/serve/load.csv

Starts `resmlp-mt serve MODEL` and, for each number of clients, so many that ask, wait for the
answer, and ask again, over connections that stay open. The clients take their share of the same
cores. A warm-up of every tenth of the time is not counted.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from tqdm import tqdm

from resmlp_mt.data.reading import read_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows, describe_machine, describe_origin  # noqa: E402


def main() -> None:
    """Run all levels, print and append their rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="as for resmlp-mt serve")
    parser.add_argument("--input", type=Path, required=True, help="sentences")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--texts", type=int, default=1, help="in a request (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="a level (default: %(default)s)")
    parser.add_argument("--csv", type=Path, help="where to append the rows")
    parser.add_argument("--name", help="what the model is called in the rows")
    arguments = parser.parse_args()

    sentences = [line for line in read_lines(arguments.input) if line.strip()]
    command = [sys.executable, "-m", "resmlp_mt.cli", "serve", arguments.model, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = read_address(server)
            for clients in arguments.clients:
                load = Load(address, sentences, clients, arguments.texts, arguments.seconds)
                row = {"model": arguments.name or arguments.model} | load.run()
                print(json.dumps(row), flush=True)
                if arguments.csv:
                    append_rows(arguments.csv, [row])
        finally:
            server.terminate()
        if server.wait() != 0:
            sys.exit(f"the server ended with status {server.returncode}: {server.stderr.read()}")


def read_address(server: subprocess.Popen) -> str:
    """Where a server that starts listens; ends with what it said if it does not."""
    said = []
    for line in server.stderr:
        if " is translating at " in line:
            return line.split()[-1]
        said.append(line)
    sys.exit(f"the server did not start: {''.join(said)}")


class Load:
    """So many clients for so long."""

    def __init__(self, address, sentences, clients, texts, seconds):
        self.address = urlsplit(address)
        self.sentences, self.clients, self.texts, self.seconds = sentences, clients, texts, seconds
        self.times, self.errors = [], []

    def run(self) -> dict:
        """Load the server; returns a row of figures."""
        self.ends = time.monotonic() + 1.1 * self.seconds
        self.counts_from = self.ends - self.seconds
        threads = [threading.Thread(target=self._ask, args=[i]) for i in range(self.clients)]
        for thread in threads:
            thread.start()
        time.sleep(0.1 * self.seconds)
        memory = [self._read_memory()]
        for half in range(2):
            seconds = range(round(self.seconds / 2))
            for _ in tqdm(seconds, unit="s", desc=f"{self.clients} clients, half {half + 1}"):
                time.sleep(1)
            memory.append(self._read_memory())
        for thread in threads:
            thread.join()
        milliseconds = 1000 * np.array(self.times)
        return {
            "clients": self.clients,
            "texts": self.texts,
            "seconds": self.seconds,
            "requests": len(self.times),
            "errors": len(self.errors),
            "rate": f"{self.texts * len(self.times) / self.seconds:.1f}",
            "median_ms": f"{np.median(milliseconds):.2f}",
            "p95_ms": f"{np.percentile(milliseconds, 95):.2f}",
            "memory_first_mib": f"{memory[0]:.1f}",
            "memory_half_mib": f"{memory[1]:.1f}",
            "memory_mib": f"{memory[2]:.1f}",
            **describe_origin(describe_machine()),
        }

    def _connect(self) -> HTTPConnection:
        return HTTPConnection(self.address.hostname, self.address.port, timeout=120)

    def _ask(self, client: int) -> None:
        texts = islice(cycle(self.sentences), client * 37, None)  # all begin elsewhere
        connection, headers = self._connect(), {"Content-Type": "application/json"}
        while (start := time.monotonic()) < self.ends:
            body = json.dumps({"text": list(islice(texts, self.texts))})
            try:
                connection.request("POST", "/translate", body, headers)
                response = connection.getresponse()
                found = json.loads(response.read())
                if response.status != 200 or len(found["results"]) != self.texts:
                    raise ValueError(f"{response.status}: {found}")
            except (OSError, ValueError, KeyError) as error:
                self.errors.append(error)
                connection = self._connect()
                continue
            if start >= self.counts_from:
                self.times.append(time.monotonic() - start)

    def _read_memory(self) -> float:
        connection = self._connect()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return float(re.search(r"^process_resident_memory_bytes (\S+)", text, re.M)[1]) / 2**20


if __name__ == "__main__":
    main()
