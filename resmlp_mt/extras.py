"""Packages that are not installed everywhere, and the messages where they are missing."""

import importlib
import platform
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from resmlp_mt.errors import UserError

# The requirements of every installation, as in setup.py: pip's names, and their uses.
CORE = {
    "numpy": "everything",
    "sentencepiece": "subwords",
    "sentencex": "ends of sentences",
    "regex": "ends of sentences, and of what readers take for a character",
    "babel": "long numbers, as the target language writes them, and names of languages",
    "pillow": "pictures, in classify",
    "sacrebleu": "score",
    "py3langid": "telling languages apart, in prepare and serve",
    "tqdm": "bars of progress, and prepare",
    "packaging": "telling what the extras ask for",
    "filelock": "folders and files that one process alone writes to",
}
# The extra [train].
TRAINING = {
    "torch": "training, and models that were not exported",
    "ve-fairseq": "training, models that were not exported, and rarer searches",
    "safetensors": "export, and weights for images",
    "onnx": "export of classifiers that have no compiled form",
    "onnxruntime": "exports of classifiers that have no compiled form",
    "tensorboard": "train --tensorboard-logdir",
    "matplotlib": "the pictures of study",
}
_PACKAGES = {"fairseq": "ve-fairseq", "PIL": "pillow"}  # of modules that have other names
_CHECKOUT = Path(__file__).parents[1]


def list_requirements(extra: str = "") -> list[str]:
    """The requirements of the installed distribution of this project, as pip takes them.

    Args:
        extra: The name of an extra, for its own requirements; "" for those of every installation.

    Returns:
        As in setup.py, what this Python and machine have no use for left out. Nothing where the
        project is found by a path, and not installed.
    """
    from importlib.metadata import PackageNotFoundError, requires  # which takes a while

    try:
        from packaging.requirements import Requirement

        asked = map(Requirement, requires("resmlp_mt") or [])
    except (PackageNotFoundError, ModuleNotFoundError):
        return []
    wanted = []
    for requirement in asked:
        marker, requirement.marker = requirement.marker, None
        always = marker is None or marker.evaluate({"extra": ""})
        if always != bool(extra) and (always or marker.evaluate({"extra": extra})):
            wanted.append(str(requirement))
    return wanted


def list_extras() -> list[str]:
    """The extras of the installed distribution, as of `list_requirements`."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        return metadata("resmlp_mt").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []


def advise(extra: str = "") -> str:
    """The command that installs an extra; "" stands for the requirements of every installation.

    It does not name the project, since a registry may hold another one under this name.
    """
    if (_CHECKOUT / "constraints.txt").exists():
        wanted = f"'.[{extra}]'" if extra else "."
        folder = shlex.quote(str(_CHECKOUT))
        command = f"cd {folder} && pip install -e {wanted} -c constraints.txt"
    elif requirements := list_requirements(extra):
        command = shlex.join(["pip", "install", *requirements])
    else:
        return f"install what setup.py asks for{f' with [{extra}]' * bool(extra)}"
    made = ' && pip install "$(python -m resmlp_mt.compat.fairseq_wheel)"'
    return command + made * (extra in ("train", "export") and not _has_fairseq_wheel())


def _has_fairseq_wheel() -> bool:
    """Whether ve-fairseq is published for this Python and machine, as setup.py says it too."""
    machine = sys.platform, platform.machine()
    return machine == ("linux", "x86_64") and sys.version_info < (3, 13)


def explain_missing(module: str | None) -> str | None:
    """The message for a module that is missing; None of one that no installation asks for."""
    package = _PACKAGES.get(str(module), str(module))
    if package in CORE:
        return (
            f"{module} is not installed: pip install {package} (resmlp-mt doctor says what else is "
            "missing)"
        )
    if package in TRAINING:
        return f"{module} is not installed: {advise('train')} (the extra [train])"
    return None


def import_with_onnx(name: str):
    """Import a module that needs ONNX, of the extra [export], or ONNX Runtime, of [onnx].

    Raises:
        UserError: If that is not installed.
    """
    return _import_or_say(
        name,
        ("onnx", "onnxruntime"),
        lambda package: (
            f"a classifier without compiled form needs {package}: "
            f"{advise('export' if package == 'onnx' else 'onnx')}"
        ),
    )


def import_with_fairseq(name: str, use: str):
    """Import a module that needs the extra [train], which exported models do without.

    Args:
        name: The module.
        use: Its purpose.

    Raises:
        UserError: If one of them is not installed.
    """
    return _import_or_say(
        name,
        ("torch", "fairseq"),
        lambda package: (
            f"{use} needs {package}, which is not installed: {advise('train')} (the extra [train])"
        ),
    )


def import_kornia(name: str = "kornia.augmentation"):
    """Import a module of kornia.

    Raises:
        UserError: If kornia is missing.
    """
    said = "training on images needs kornia"
    return _import_or_say(name, ("kornia",), lambda _: f"{said}: {advise('image')}")


def _import_or_say(name: str, packages: tuple[str, ...], explain: Callable[[str], str]):
    """Import a module; where it fails for one of the packages, say so."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).split(".")[0] not in packages:
            raise
        raise UserError(explain(str(error.name))) from None


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
