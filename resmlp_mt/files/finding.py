"""Where models lie: those that come with the package, folders, checkpoints and exports."""

import math
import re
from pathlib import Path

from resmlp_mt.errors import UserError

PRETRAINED = Path(__file__).parents[1] / "pretrained"
LAST = "checkpoint_last.pt"  # what a training goes on from, by fairseq's default
# In the order of preference where a folder holds several.
CHECKPOINT_NAMES = ("model.pt", "checkpoint_average.pt", "checkpoint_best.pt", LAST)
EXPORT_CONFIG = "export.json"  # in every folder that `export_model` made, and in no other

# fairseq-train's names for checkpoints: at the end of an epoch, and within one.
_NUMBERED = re.compile(r"checkpoint(?:(\d+)|_(\d+)_(\d+))\.pt")


def pretrained_names(kind: str | None = None) -> list[str]:
    """The models that come with the package: those of "text", of "images", or all."""
    kinds = {path.name: _kind(path) for path in PRETRAINED.glob("*") if path.is_dir()}
    return sorted(name for name in kinds if kind in (None, kinds[name]))


def shipped_translators() -> list[str]:
    """One translator that comes with the package for each pair of languages.

    Their names end in the pair, as multi30k-en-de. One that is called by the pair alone is for text
    of any kind, and comes before others.
    """
    chosen: dict[tuple[str, ...], str] = {}
    for name in sorted(pretrained_names("text"), key=len):
        chosen.setdefault(tuple(name.split("-")[-2:]), name)
    return sorted(chosen.values())


def _kind(folder: Path) -> str:
    return "text" if any(folder.glob("dict.*.txt")) else "images"


def find_checkpoint(model: str | Path, kind: str | None = None) -> Path:
    """The checkpoint that a model's name, folder or file stands for.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint.
        kind: As for `pretrained_names`: which ones to offer if there is none.

    Raises:
        UserError: If there is none.
    """
    if not str(model):  # of an unset variable; it would stand for the working folder
        raise UserError(f"the name of the model is empty; {_offer(kind)}")
    path = Path(model)
    # A folder of data may have the name of a model that comes with the package.
    for folder in (path, PRETRAINED / str(model)):
        for name in CHECKPOINT_NAMES:
            if (folder / name).is_file():
                return folder / name
    if is_exported(PRETRAINED / str(model)) and not path.exists():
        raise UserError(
            f"{model}: here is its export alone, for inference; the weights to train further are "
            f"resmlp_mt/pretrained/{model}/model.pt of the project's repository"
        )
    if is_exported(path):
        raise UserError(f"{path}: exported, for inference alone; name what it was exported from")
    if path.is_dir():
        raise UserError(
            f"{path}: no checkpoint in this folder (looked for {', '.join(CHECKPOINT_NAMES)})"
        )
    if not path.is_file():
        raise UserError(f"{model}: no such model; {_offer(kind)}")
    return path


def _offer(kind: str | None) -> str:
    return f"name a folder, a checkpoint, or one of {', '.join(pretrained_names(kind))}"


def is_exported(path: Path) -> bool:
    """Whether `export_model` made this folder."""
    return (path / EXPORT_CONFIG).is_file()


def find_export(model: str | Path, device: str = "auto") -> Path | None:
    """The export that computes for a model, if there is one: a folder, or that of a name.

    Args:
        model: As for `find_checkpoint`; or a folder that `export_model` made.
        device: A torch device or "auto". Where it is no CPU, a name stands for the checkpoint.
    """
    path, shipped = Path(model), PRETRAINED / str(model)
    if is_exported(path):
        return path
    hidden = path.is_file() or any((path / name).is_file() for name in CHECKPOINT_NAMES)
    return shipped if is_exported(shipped) and device in ("auto", "cpu") and not hidden else None


def locate_model(model: str | Path, kind: str | None = None) -> str:
    """The path of a model or an export in any working directory, or its name if it is shipped.

    Raises:
        UserError: If there is none.
    """
    path = Path(model)
    found = str(model) and find_export(path) or find_checkpoint(model, kind)
    return str(model if found.is_relative_to(PRETRAINED) else path.absolute())


def numbered_checkpoints(folder: Path) -> list[tuple[Path, bool]]:
    """The numbered checkpoints of a training, oldest first.

    Returns:
        Pairs of a path and whether it was written at the end of an epoch. The others come from
        --save-interval-updates.
    """
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := _NUMBERED.fullmatch(path.name):
            epoch, within, update = match.groups()
            found[path] = (int(epoch), math.inf) if epoch else (int(within), int(update))
    return [(path, found[path][1] == math.inf) for path in sorted(found, key=found.get)]


def best_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints that a training kept for their validation score, the newest first.

    They are checkpoint_best.pt and those of --keep-best-checkpoints.
    """
    found = [*folder.glob("checkpoint_best.pt"), *folder.glob("checkpoint.best_*.pt")]
    return sorted(found, key=lambda path: -path.stat().st_mtime)
