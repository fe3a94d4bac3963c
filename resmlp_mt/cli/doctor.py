"""The installation, its machine, and the problems of both. Status 1 if there are any."""

import argparse
import importlib
import importlib.util
import os
import platform
import sys
from pathlib import Path

from resmlp_mt import __version__
from resmlp_mt.errors import UserError

# What translates with exported models, beside the compiled code.
_SMALL = ("numpy", "sentencepiece")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are no flags."""


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    # Whether torch and fairseq were left out.
    is_small = not any(map(importlib.util.find_spec, ("torch", "fairseq")))
    _row("resmlp_mt", __version__)
    _row("Python", platform.python_version())
    if is_small:
        _row("installation", "for exported models: neither torch nor fairseq is installed")
    problems = _check_packages(is_small)
    if not is_small:
        problems += _check_whole()
    if _version("numpy"):  # which reads it
        problems += _check_native(is_small)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    print("no problem found" if not problems else f"{len(problems)} to put right")
    return 1 if problems else 0


def _row(name: str, value: str) -> None:
    print(f"{name:17} {value}")


def _version(package: str) -> str | None:
    from importlib import metadata  # not for --help: it takes a tenth of that

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _check_packages(is_small: bool) -> list[str]:
    """Packages that are missing: of the core, and of [train] where a part of it is there."""
    from resmlp_mt.extras import advise, list_extras, list_packages

    if not list_packages():
        return [f"resmlp_mt is found by a path, and not installed: {advise()}"]
    missing, shown = [], set()
    for extra in ("", *list_extras()):
        packages = list_packages(extra)
        for package in filter(lambda package: package not in shown, packages):
            shown.add(package)
            version = _version(package)
            if version is None and (package in _SMALL if is_small else extra in ("", "train")):
                version = "missing"
                command = advise(extra) if extra else f"pip install {package}"
                missing.append(f"{package} is missing: {command}")
            _row(package, version or "not installed" + f"; of the extra [{extra}]" * bool(extra))
        if extra and not all(map(_version, packages)):
            _row(f"extra [{extra}]", f"if you want it: {advise(extra)}")
    return missing


def _check_whole() -> list[str]:
    """The problems of an installation that has torch or fairseq."""
    from resmlp_mt.extras import import_timm

    problems = []
    if not (3, 11) <= sys.version_info < (3, 15):
        problems.append("Python 3.11 to 3.14 are tested, and no other")
    for module in ("torch", "fairseq"):
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a broken installation raises
            if not (isinstance(error, ModuleNotFoundError) and error.name == module):
                said = f"{type(error).__name__}: {error}"
                problems.append(f"{module} cannot be imported, which everything needs: {said}")
    try:
        import_timm()
        _row("timm", _version("timm") or "not installed, for teachers: pip install timm")
    except UserError as error:
        problems.append(str(error))
    if "torch" in sys.modules:
        _show_devices()
    if "fairseq" in sys.modules:
        from resmlp_mt.compat.processor import multiplies_bf16

        _row("bf16 on CPUs", "fast" if multiplies_bf16() else "slow here: train without --bf16")
    _row("apex", _version("apex") or "not installed, not needed")
    if (apex := importlib.util.find_spec("apex")) and not any(
        (Path(folder) / "multi_tensor_apply").is_dir()
        for folder in apex.submodule_search_locations or ()
    ):
        problems.append("apex is PyPI's web toolkit, not NVIDIA's library: pip uninstall apex")
    return problems


def _show_devices() -> None:
    import torch

    from resmlp_mt.checkpoints.device import choose_device

    _row("CPU threads", str(torch.get_num_threads()))
    for i in range(torch.cuda.device_count()):
        _row(f"cuda:{i}", torch.cuda.get_device_name(i))
    if not torch.cuda.is_available():
        found = choose_device("auto")
        # No accelerator is no fault. Where the machine has one, this tells what to check.
        built = f" (torch is built for CUDA {torch.version.cuda})" if torch.version.cuda else ""
        _row("accelerator", f"{'none' if found == 'cpu' else found}{built}")


def _check_native(is_small: bool) -> list[str]:
    """The compiled code, without which no export runs, and checkpoints translate more slowly."""
    from resmlp_mt.engines.kernels.library import HOW_TO_BUILD, find_kind

    try:
        kind = find_kind()
    except UserError as error:
        return [str(error)]
    off = os.environ.get("RESMLP_CPU_ISA")
    lacking = "off, by RESMLP_CPU_ISA" if off else f"not built: {HOW_TO_BUILD}"
    _row("compiled search", kind or lacking)
    return [f"exports need the compiled code, which is {lacking}"] if is_small and not kind else []
