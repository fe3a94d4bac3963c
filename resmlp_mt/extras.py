"""Packages that are not installed everywhere, and the messages where they are missing."""

import importlib
import platform
import re
import shlex
import sys
from pathlib import Path

from resmlp_mt.errors import UserError

_PACKAGES = {"fairseq": "ve-fairseq", "PIL": "pillow", "bs4": "beautifulsoup4"}  # of modules
_CHECKOUT = Path(__file__).parents[1]
# A machine for which all of them are published.
_USUAL = {"python_version": "3.12", "platform_machine": "x86_64", "sys_platform": "linux"}


def list_requirements(extra: str = "", everywhere: bool = False) -> list[str]:
    """The requirements of the installed distribution of this project, as pip takes them.

    Args:
        extra: The name of an extra, for its own requirements; "" for those of every installation.
        everywhere: With what this Python and machine have no use for.

    Returns:
        As in setup.py. Nothing where the project is found by a path, and not installed.
    """
    from importlib.metadata import PackageNotFoundError, requires  # which takes a while

    try:
        from packaging.requirements import Requirement

        asked = map(Requirement, requires("resmlp_mt") or [])
    except (PackageNotFoundError, ModuleNotFoundError):
        return []
    machine, wanted = _USUAL if everywhere else {}, []
    for requirement in asked:
        marker, requirement.marker = requirement.marker, None
        always = marker is None or marker.evaluate(machine | {"extra": ""})
        if always != bool(extra) and (always or marker.evaluate(machine | {"extra": extra})):
            wanted.append(str(requirement))
    return wanted


def list_packages(extra: str = "") -> list[str]:
    """The names of the packages of `list_requirements`, everywhere."""
    return [re.match(r"[\w.-]+", asked)[0] for asked in list_requirements(extra, everywhere=True)]


def list_extras() -> list[str]:
    """The extras of the installed distribution but "dev", and but "export", which is "train"."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        extras = metadata("resmlp_mt").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
    return [extra for extra in extras if extra not in ("dev", "export")]


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
    """The message for a module that is missing; None of one that no installation asks for.

    Of the extras that ask for it, the smallest is named.
    """
    name = str(module).partition(".")[0]
    package = _PACKAGES.get(name, name.replace("_", "-"))
    core = list_packages()
    if not core and name not in ("None", "resmlp_mt"):  # found by a path, with no requirements
        return f"{name} is not installed: {advise()}"
    if package in core:
        said = f"pip install {package} (resmlp-mt doctor says what else is missing)"
        return f"{name} is not installed: {said}"
    extras = [extra for extra in list_extras() if package in list_packages(extra)]
    if not extras:
        return None
    extra = min(extras, key=lambda extra: len(list_packages(extra)))
    return f"{name} is not installed: {advise(extra)} (the extra [{extra}])"


def import_extra(name: str, use: str):
    """Import a module that needs packages which not every installation has.

    Args:
        name: The module.
        use: Its purpose.

    Raises:
        UserError: If one of them is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if explained := explain_missing(error.name):
            raise UserError(f"{use} needs more: {explained}") from None
        raise


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
