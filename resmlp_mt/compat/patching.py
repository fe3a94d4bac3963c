"""Functions and classes of ours in the place of fairseq's; docs/patches.md says which, and why."""

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable

from resmlp_mt.errors import UserError

_KNOWN = "0.12."  # the versions of fairseq that these were written for begin so
REPLACED: dict[str, Callable] = {}  # by what they stand in the place of


def replaces(target: str):
    """Decorate a function or a class that `apply` puts in the place of one of fairseq's.

    Args:
        target: "module:Class.function"; "module:Class" or "module:REGISTRY[name]" for a class. A
            function of ours gets the one that it replaces first.
    """

    def declare(ours: Callable) -> Callable:
        REPLACED[target] = ours
        return ours

    return declare


def apply() -> None:
    """Put all decorated functions and classes in place; the second time changes nothing.

    Raises:
        UserError: If this is another fairseq, whose functions may do something else.
    """
    version = importlib.import_module("fairseq").__version__
    if not version.startswith(_KNOWN):
        raise UserError(
            f"fairseq {version} is not known to resmlp_mt, which replaces parts of "
            f"{_KNOWN}x: pip install ve-fairseq==0.12.3"
        )
    for target, ours in REPLACED.items():
        _replace(target, ours)


def _replace(target: str, ours: Callable) -> None:
    module, _, path = target.rstrip("]").replace("[", ".").partition(":")
    place, _, name = path.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{place}" if place else module)
    if isinstance(owner, dict):
        owner[name] = ours
    elif isinstance(original := getattr(owner, name), type):
        # Those who have imported it have its name. `python -m` runs a copy of its module.
        for copy in (module, "fairseq_cli.train", "__main__"):
            if getattr(sys.modules.get(copy), name, None) is original:
                setattr(sys.modules[copy], name, ours)
    elif getattr(original, "ours", None) is not ours:

        @functools.wraps(original)
        def patched(*args, **kwargs):
            return ours(original, *args, **kwargs)

        patched.ours = ours
        setattr(owner, name, patched)
