"""Checksums of files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sum_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of files in a folder, by name."""
    sums = {}
    for name in names:
        with open(folder / name, "rb") as stream:
            sums[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums
