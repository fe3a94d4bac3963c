"""Checksums, which tell a model from another one in the same place."""

import hashlib
from pathlib import Path

from resmlp_mt.data.subwords import BESIDE
from resmlp_mt.files.finding import EXPORT_CONFIG, find_checkpoint, find_export
from resmlp_mt.files.sums import sum_files


def checksum_model(model: str | Path) -> str:
    """The SHA-256 of a model's checkpoint, and of the files beside it that its text needs.

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
