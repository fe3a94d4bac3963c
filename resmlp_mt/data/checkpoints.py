"""Where models lie: those that come with the package, folders, files, and timm."""

from pathlib import Path

from resmlp_mt.errors import UserError

PRETRAINED = Path(__file__).parents[1] / "pretrained"
# In the order of preference where a folder holds several.
CHECKPOINT_NAMES = ("model.pt", "checkpoint_average.pt", "checkpoint_best.pt", "checkpoint_last.pt")


def pretrained_names() -> list[str]:
    """The models that come with the package."""
    return sorted(path.name for path in PRETRAINED.glob("*") if path.is_dir())


def find_checkpoint(model: str | Path) -> Path:
    """The checkpoint that a model's name, folder or file stands for.

    Raises:
        UserError: If there is none.
    """
    path = Path(model)
    # A folder of data may have the name of a model that comes with the package.
    for folder in (path, PRETRAINED / str(model)):
        for name in CHECKPOINT_NAMES:
            if (folder / name).is_file():
                return folder / name
    if path.is_dir():
        raise UserError(
            f"{path}: no checkpoint in this folder (looked for {', '.join(CHECKPOINT_NAMES)})"
        )
    if not path.is_file():
        raise UserError(
            f"{model}: no such model; name a folder, a checkpoint, or one of "
            f"{', '.join(pretrained_names())}"
        )
    return path


def import_timm():
    """timm, or None where it is not installed.

    Raises:
        UserError: If it is installed and cannot be imported.
    """
    try:
        import timm
    except ModuleNotFoundError as error:
        if error.name == "timm":
            return None
        raise UserError(f"timm is installed and needs {error.name}: pip install it") from None
    except Exception as error:  # a torchvision that does not fit raises any kind
        raise UserError(
            f"timm is installed and cannot be imported ({error}); its torchvision must be built "
            "for this torch: install both from one index, as with "
            "pip install torch torchvision --index-url https://download.pytorch.org/whl/cpu"
        ) from None
    return timm
