"""Write requirements.lock and requirements-cuda.lock: each package by version and sha256.

    python scripts/lock.py    # with a network, and uv (pip install uv)

The versions are those of constraints.txt. uv resolves setup.py and all its extras for Linux on
x86_64, for Python 3.11 and 3.12, which have to agree; a package may be installed from its wheels
for these alone, and from its source where it has no wheel. requirements.lock has torch's CPU build,
whose hashes are read from torch's own index; where that is out of reach they are kept, if the
version is. requirements-cuda.lock has torch as PyPI has it, and the CUDA packages it needs.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu/torch/"
CUDA = re.compile(r"(cuda|nvidia)-.+|triton")
HEADER = """\
# {what}, for Linux on x86_64 and Python 3.11 and 3.12.
# Written by scripts/lock.py; docs/supply-chain.md says how it is used and renewed.
"""
_Pins = dict[str, tuple[str, list[str]]]  # name: version, sha256 of each file


class _Refused(Exception):
    """A fault that ends the script."""


def main() -> int:
    """Write both files."""
    constraints = read_pins((ROOT / "constraints.txt").read_text("utf-8"))
    try:
        pins = _resolve("3.11")
        for name, (version, hashes) in _resolve("3.12").items():
            if name not in pins or pins[name][0] != version:
                raise _Refused(f"{name}: not the same for both Pythons")
            pins[name] = version, sorted({*pins[name][1], *hashes})
        unpinned = [name for name in pins if name not in constraints and not CUDA.fullmatch(name)]
        if unpinned:
            raise _Refused(f"not in constraints.txt: {', '.join(unpinned)}")
        unused = sorted(constraints.keys() - pins)
        if unused:
            raise _Refused(f"in constraints.txt, but nothing needs it: {', '.join(unused)}")
        cpu = {name: pin for name, pin in pins.items() if name in constraints}
        cpu["torch"] = _cpu_build(pins["torch"][0])
    except _Refused as error:
        print(f"lock.py: {error}", file=sys.stderr)
        return 2
    _write("requirements.lock", "What is installed, with torch's CPU build", cpu)
    _write("requirements-cuda.lock", "What is installed, with torch for CUDA", pins)
    return 0


def read_pins(text: str) -> _Pins:
    """Read what a lock, or constraints.txt, pins, by normalized name."""
    pins: _Pins = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words = line.split("#")[0].split()
        if words:
            name, version = words[0].split("==")
            pins[normalize(name)] = version, [re.sub("^--hash=", "", word) for word in words[1:]]
    return pins


def normalize(name: str) -> str:
    """One spelling of a package's name, as the registry has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def cpu_hashes(page: str, version: str) -> list[str]:
    """Find the hashes of torch's CPU wheels, in the page of its index."""
    name = rf"torch-{re.escape(version)}(?:%2B|\+)cpu-cp31([12])-cp31\1-manylinux\w+x86_64\.whl"
    found = re.findall(rf'{name}#sha256=([0-9a-f]{{64}})"', page)
    return sorted({f"sha256:{value}" for _, value in found})


def _cpu_build(version: str) -> tuple[str, list[str]]:
    try:
        with urllib.request.urlopen(CPU_INDEX, timeout=60) as response:
            hashes = cpu_hashes(response.read().decode(), version)
        if len(hashes) != 2:
            raise _Refused(f"{CPU_INDEX} has {len(hashes)} wheels of torch {version}, not 2")
        return f"{version}+cpu", hashes
    except urllib.error.URLError as error:
        path = ROOT / "requirements.lock"
        kept = read_pins(path.read_text("utf-8") if path.exists() else "").get("torch", ("", []))
        if kept[0] != f"{version}+cpu":
            raise _Refused(f"{CPU_INDEX}: {error.reason}; no hashes of torch {version}") from None
        print(f"lock.py: {CPU_INDEX}: {error.reason}; torch's hashes are kept", file=sys.stderr)
        return kept


def _resolve(python: str) -> _Pins:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pylock.toml"
        command = ["uv", "pip", "compile", "setup.py", "--all-extras", "--quiet"]
        command += ["--constraint", "constraints.txt", "--output-file", str(path)]
        command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
        try:
            subprocess.run(command, cwd=ROOT, check=True)
        except FileNotFoundError:
            raise _Refused("uv is needed: pip install uv") from None
        except subprocess.CalledProcessError:
            raise _Refused(f"uv found no versions for Python {python}") from None
        packages = tomllib.loads(path.read_text("utf-8"))["packages"]
    return {
        package["name"]: (
            package["version"],
            sorted({f"sha256:{file['hashes']['sha256']}" for file in _files(package)}),
        )
        for package in packages
    }


def _files(package: dict) -> Iterable[dict]:
    return package.get("wheels") or [package["sdist"]]


def _write(name: str, what: str, pins: _Pins) -> None:
    lines = [
        " \\\n".join([f"{package}=={version}", *(f"    --hash={value}" for value in hashes)])
        for package, (version, hashes) in sorted(pins.items())
    ]
    text = HEADER.format(what=what) + "\n".join(lines) + "\n"
    (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
