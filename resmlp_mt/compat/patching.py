"""One declaration for every patch: what is mended, for whom, and which functions it knows.

A patch replaces functions of fairseq. It is applied where all of them read as they did when it was
written; where one does not, it is left out with a warning, and fairseq stays as it is.
"""

import functools
import hashlib
import inspect
import logging
import pkgutil
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

PATCHES: list["Patch"] = []


@dataclass(frozen=True)
class Replacement:
    """A function or class in the place of another, and the sign of that one.

    Attributes:
        target: "module:Class.function"; "module:Class" or "module:REGISTRY[name]" for a class.
        ours: A function that gets the one it replaces first; or a class.
        known: Digests of the sources that it was written for; or the names of the parameters, as
            "(path, cfg)", where all that matters is how it is called.
        guards: Whose source is looked at: the function, or those that go with it.
    """

    target: str
    ours: Callable
    known: tuple[str, ...]
    guards: tuple[str, ...]


@dataclass(frozen=True)
class Patch:
    """A defect of fairseq that takes something of ours in the place of fairseq's.

    Attributes:
        name: What docs/patches.md calls it.
        defect: What fairseq does, in sentences.
        met_by: Who meets it.
        instead: What happens here, in sentences.
    """

    name: str
    defect: str
    met_by: str
    instead: str
    replacements: list[Replacement] = field(default_factory=list)

    def __post_init__(self):
        PATCHES.append(self)

    def replaces(self, target: str, *known: str, guards: tuple[str, ...] = ()):
        """Decorate what shall stand in the place of a function; arguments as for `Replacement`."""

        def declare(ours: Callable) -> Callable:
            self.replacements.append(Replacement(target, ours, known, guards or (target,)))
            return ours

        return declare

    def apply(self) -> bool:
        """Replace the functions, all or none; the second time changes nothing.

        Returns:
            Whether they are replaced.
        """
        unknown = [g for r in self.replacements for g in r.guards if not _is_known(g, r.known)]
        if unknown:
            logger.warning(
                "this version of fairseq is not known to resmlp_mt: %s differs and is left as it "
                "is. What it does: %s (docs/patches.md, %s)",
                ", ".join(unknown),
                " ".join(self.defect.split()),
                self.name,
            )
            return False
        for replacement in self.replacements:
            _replace(replacement)
        return True


def find_original(target: str) -> Callable:
    """The function as fairseq has it, whatever stands in its place. target: "module:function"."""
    module, _, path = target.partition(":")
    first, *names = path.split(".")
    found = pkgutil.resolve_name(f"{module}:{first}")
    if isinstance(found, type):
        found = vars(found).get("_replaced", found)
    for name in names:
        found = getattr(found, name)
    return inspect.unwrap(found)


def digest(function: Callable) -> str:
    """The sign of a function: a hash of its source."""
    source = textwrap.dedent(inspect.getsource(function))
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def _is_known(guard: str, known: tuple[str, ...]) -> bool:
    try:
        found = find_original(guard)
        parameters = ", ".join(inspect.signature(found).parameters)
        return f"({parameters})" in known or digest(found) in known
    except (ImportError, AttributeError, OSError):  # gone, or without its source
        return False


def _replace(replacement: Replacement) -> None:
    module, _, path = replacement.target.rstrip("]").replace("[", ".").partition(":")
    place, _, name = path.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{place}" if place else module)
    if isinstance(owner, dict):
        owner[name] = replacement.ours
        return
    original = getattr(owner, name)
    if isinstance(original, type):
        # Those who have imported it have its name. `python -m` runs a copy of its module.
        for place in (module, "fairseq_cli.train", "__main__"):
            if getattr(sys.modules.get(place), name, None) is original:
                setattr(sys.modules[place], name, replacement.ours)
        if original is not replacement.ours:
            replacement.ours._replaced = original
        return
    if getattr(original, "ours", None) is replacement.ours:
        return

    @functools.wraps(original)
    def patched(*args, **kwargs):
        return replacement.ours(original, *args, **kwargs)

    patched.ours = replacement.ours
    setattr(owner, name, patched)
