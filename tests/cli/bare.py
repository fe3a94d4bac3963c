"""Environments that hold the wheel of this project and few packages, without a network."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cli.commands import ENVIRONMENT
from packaging.requirements import Requirement

PIP = [sys.executable, "-m", "pip"]
# Else the project of that path would count as installed.
APART = {k: v for k, v in ENVIRONMENT.items() if k != "PYTHONPATH"}


def build_wheel(source: Path, folder: Path, **variables: str) -> Path:
    """Build the wheel of a source tree, with the setuptools that is here, and these variables.

    It is built from a copy: setuptools packs whatever lies in a `build` beside setup.py.
    """
    copy = folder / "source"
    clean = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(source / "resmlp_mt", copy / "resmlp_mt", ignore=clean)
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(source / name, copy)
    built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy]
    environment = os.environ | variables
    subprocess.run([*PIP, *built], check=True, capture_output=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Bare:
    """A virtual environment with nothing in it.

    Args:
        folder: Where to make it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (self.site,) = folder.glob("lib/python3*/site-packages")

    def link(self, names: list[str]) -> None:
        """Put packages into it as they are installed here, with all that they require."""
        seen = set()
        while names:
            name = re.sub(r"[-_.]+", "-", names.pop()).lower()
            if name in seen:
                continue
            seen.add(name)
            package = importlib.metadata.distribution(name)
            for first in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
                if not (self.site / first).exists():
                    (self.site / first).symlink_to(package.locate_file(first))
            asked = map(Requirement, package.requires or [])
            names += [r.name for r in asked if not r.marker or r.marker.evaluate({"extra": ""})]

    def install(self, wheel: Path) -> None:
        """Install a wheel, without what it requires."""
        command = ["--python", self.folder / "bin/python", "install", "--no-deps", "--no-index"]
        subprocess.run(
            [*PIP, *command, wheel], check=True, capture_output=True, env=APART, cwd=self.folder
        )

    def words(self, *command) -> list[str]:
        """The command line of a program of it."""
        name, *arguments = map(str, command)
        return [str(self.folder / "bin" / name), *arguments]

    def run(self, *command, **variables: str) -> subprocess.CompletedProcess:
        """Run a program of it, with these variables."""
        environment = APART | variables
        options = {"capture_output": True, "text": True, "env": environment, "cwd": self.folder}
        return subprocess.run(self.words(*command), **options)
