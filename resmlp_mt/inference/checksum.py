"""What tells one model from another at the same place."""

import hashlib
from pathlib import Path

from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.inference.exported import CONFIG, is_exported


def checksum_model(model: str | Path) -> str:
    """The SHA-256 of a model's checkpoint, and of the dictionaries and subwords that lie beside it.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
            `export_model` made, whose configuration has the checksums of the others.

    Raises:
        UserError: If there is none.
    """
    folder = Path(model)
    if is_exported(folder):
        paths = [folder / CONFIG]
    else:
        path = find_checkpoint(model)
        paths = [path, *sorted(path.parent.glob("dict.*.txt")), *sorted(path.parent.glob("spm*"))]
    total = hashlib.sha256()
    for path in paths:
        total.update(checksum_file(path).encode())
    return total.hexdigest()


def checksum_file(path: Path) -> str:
    """The SHA-256 of a file, a block at a time."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
