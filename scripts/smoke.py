"""Try what an installation of the core can do: python scripts/smoke.py PYTHON ...

PYTHON is what has it installed: a path, or words as "qemu-aarch64 -L ROOT ROOT/usr/bin/python3".
Whoever runs this needs the standard library alone. Prints what was tried and how long it took, and
ends with 1 where something failed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SAID = "Where did you learn that?"
MEANT = r"Wo(her)? hast du das \w+\?"
DRAW = "from PIL import Image; Image.effect_noise((48, 40), 90).convert('RGB').save('a.png')"
VERSIONS = """if True:
    import importlib.metadata, platform
    print("Python", platform.python_version(), platform.machine(), end="")
    for name in "numpy sentencepiece pillow sacrebleu torch".split():
        try:
            print(f", {name} {importlib.metadata.version(name)}", end="")
        except importlib.metadata.PackageNotFoundError:
            pass
    from resmlp_mt.engines.kernels.library import find_kind
    print(", compiled code:", find_kind() or "none")
"""


class Installation:
    """Runs programs of an installation, in a folder.

    Args:
        python: The words that start its Python.
        folder: Where.
    """

    def __init__(self, python: list[str], folder: Path):
        self.python, self.folder = python, folder

    def words(self, *command: str) -> list[str]:
        """The words that start `resmlp-mt`."""
        return [*self.python, "-m", "resmlp_mt.cli", *command]

    def run(self, *command: str, status: int = 0, **variables: str) -> str:
        """The output of `resmlp-mt`; of a run that shall end with a status, its error message."""
        done = self.execute(self.words(*command), variables)
        assert done.returncode == status, f"{command}: {done.stderr}"
        return done.stderr if status else done.stdout

    def execute(self, words: list[str], variables: dict) -> subprocess.CompletedProcess:
        """Run a command."""
        return subprocess.run(
            words, capture_output=True, text=True, cwd=self.folder, env=os.environ | variables
        )

    def has(self, module: str) -> bool:
        """Whether it has a module."""
        code = f"import sys, importlib.util as u; sys.exit(not u.find_spec({module!r}))"
        return self.execute([*self.python, "-c", code], {}).returncode == 0


def translate(it: Installation) -> None:
    """With compiled code, where there is some, and without."""
    for variables in ({}, {"RESMLP_CPU_ISA": "plain"}):
        said = it.run("translate", "--model", "en-de", SAID, **variables)
        assert re.fullmatch(MEANT, said.strip()), said


def classify(it: Installation) -> None:
    """Likewise."""
    assert it.execute([*it.python, "-c", DRAW], {}).returncode == 0
    for variables in ({}, {"RESMLP_CPU_ISA": "plain"}):
        found = json.loads(it.run("classify", "cifar10", "a.png", "--json", **variables))
        assert found, found


def score(it: Installation) -> None:
    """A text against itself."""
    (it.folder / "a.de").write_text("Es regnet schon wieder sehr.\n")
    assert "100.0" in it.run("score", "a.de", "--ref", "a.de")


def serve(it: Installation) -> None:
    """A translation over HTTP."""
    server = subprocess.Popen(
        it.words("serve", "en-de", "--port", "0"), cwd=it.folder, stderr=subprocess.PIPE, text=True
    )
    try:
        address = next(line for line in server.stderr if "translating at " in line).split()[-1]
        body = json.dumps({"text": SAID}).encode()
        asked = urllib.request.Request(
            f"{address}/translate", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=600) as answer:
            assert re.search(MEANT, answer.read().decode())
    finally:
        server.terminate()
        server.wait()


def say_what_lacks(it: Installation) -> None:
    """A command whose extra is missing names the extra."""
    said = it.run("train", "data", status=2)
    assert "[train]" in said and said.count("\n") == 1, said


def main() -> int:
    """Try everything that the installation has."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        words = [os.path.abspath(word) if "/" in word else word for word in sys.argv[1:]]
        it = Installation(words or [sys.executable], Path(folder))
        print(it.execute([*it.python, "-c", VERSIONS], {}).stdout.strip(), flush=True)
        tried = [translate, classify, score]
        # Under an emulator no worker can start: a process starts Python without it.
        tried += [serve] * (it.has("fastapi") and len(it.python) == 1)
        tried += [say_what_lacks] * (not it.has("torch"))
        for attempt in tried:
            begun = time.perf_counter()
            try:
                attempt(it)
                result = f"{time.perf_counter() - begun:.1f} s"
            except Exception as error:  # whatever it is, the others are tried
                failed, result = 1, f"FAILED ({type(error).__name__}: {error})"
            print(f"{attempt.__name__.replace('_', ' '):16} {result}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
