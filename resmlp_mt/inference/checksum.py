"""What tells one model from another at the same place."""

import hashlib
from pathlib import Path

from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.inference.exported import CONFIG, is_exported, sum_files


def checksum_model(model: str | Path) -> str:
    """The SHA-256 of a model's checkpoint, and of the dictionaries and subwords that lie beside it.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
            `export_model` made, whose configuration has the checksums of the others.

    Raises:
        UserError: If there is none.
    """
    folder, names = Path(model), [CONFIG]
    if not is_exported(folder):
        checkpoint = find_checkpoint(model)
        folder = checkpoint.parent
        companions = (*folder.glob("dict.*.txt"), *folder.glob("spm*.model"))
        names = [checkpoint.name, *sorted(path.name for path in companions)]
    sums = sum_files(folder, names)
    return hashlib.sha256(repr(sums).encode()).hexdigest()
