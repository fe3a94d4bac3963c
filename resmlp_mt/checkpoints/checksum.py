"""Checksums, which tell a model from another one in the same place."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from resmlp_mt.data.subwords import BESIDE
from resmlp_mt.files.finding import EXPORT_CONFIG, find_checkpoint, find_export


def checksum_model(model: str | Path) -> str:
    """The SHA-256 of a model's checkpoint, and of what its text needs that lies beside it.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
            `export_model` made, whose configuration has the checksums of the others.

    Raises:
        UserError: If there is none.
    """
    first, *others = list_files(model)
    if first.name == EXPORT_CONFIG:
        others = []
    sums = sum_files(first.parent, [first.name, *sorted(path.name for path in others)])
    return hashlib.sha256(repr(sums).encode()).hexdigest()


def list_files(model: str | Path) -> list[Path]:
    """The files of a model: its checkpoint, or the configuration of an export, and then the others.

    Raises:
        UserError: If there is none.
    """
    if folder := find_export(model):
        first, patterns = folder / EXPORT_CONFIG, ("*.onnx", "*.safetensors*", "model.pt")
    else:
        first, patterns = find_checkpoint(model), ()
    return [first, *(path for name in (*BESIDE, *patterns) for path in first.parent.glob(name))]


def sum_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of files in a folder, by name."""
    sums = {}
    for name in names:
        with open(folder / name, "rb") as stream:
            sums[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums
