"""Checksums, which tell a model from another one in the same place."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from resmlp_mt.files.finding import EXPORT_CONFIG, find_checkpoint, is_exported


def checksum_model(model: str | Path) -> str:
    """The SHA-256 of a model's checkpoint, and of the dictionaries and subwords that lie beside it.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
            `export_model` made, whose configuration has the checksums of the others.

    Raises:
        UserError: If there is none.
    """
    folder, names = Path(model), [EXPORT_CONFIG]
    if not is_exported(folder):
        checkpoint = find_checkpoint(model)
        folder = checkpoint.parent
        companions = (*folder.glob("dict.*.txt"), *folder.glob("spm*.model"))
        names = [checkpoint.name, *sorted(path.name for path in companions)]
    sums = sum_files(folder, names)
    return hashlib.sha256(repr(sums).encode()).hexdigest()


def sum_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of files in a folder, by name."""
    sums = {}
    for name in names:
        with open(folder / name, "rb") as stream:
            sums[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums
