"""The functions of the compiled code, `resmlp_mt/native`, where it was built."""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from resmlp_mt.engines.kernels.structures import STRUCTURES
from resmlp_mt.errors import UserError

KINDS = "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "plain"  # of processors, the fastest first
Integer = ctypes.c_int64

_FOLDER = Path(__file__).parents[2] / "native"
_FUNCTIONS = "search", "encode", "classify"
HOW_TO_BUILD = (
    "install a wheel of resmlp_mt for this machine, or a C compiler (Debian: gcc; or pip install "
    "ziglang) and then resmlp_mt again; a copy of the sources, which Python prefers to what is "
    "installed where it starts there, needs pip install -e ."
)
_BUILD_AGAIN = (
    "build it again, with pip install -e . in a checkout, or set RESMLP_CPU_ISA=none to do without"
)


@cache
def find_library() -> ctypes.CDLL | None:
    """The compiled code; None where it was not built.

    Raises:
        UserError: If it cannot be loaded, as where it was built for another kind of machine, or
            lacks functions, as a build of older sources does.
    """
    for suffix in EXTENSION_SUFFIXES:
        if (path := _FOLDER / f"kernels{suffix}").is_file():
            try:
                library = ctypes.CDLL(path)
                for name in ("count_room", "count_encoder_room", "count_classifier_room"):
                    getattr(library, name).restype = Integer
                for kind in KINDS:
                    if getattr(library, f"has_{kind}")():  # other machines have no such functions
                        _ = [getattr(library, f"{name}_{kind}") for name in _FUNCTIONS]
            except (OSError, AttributeError) as error:  # their messages name the file
                raise UserError(f"the compiled code is broken ({error}): {_BUILD_AGAIN}") from None
            return library
    return None


def find_kind() -> str | None:
    """The kind of this processor; None where it is of no kind, or nothing was built.

    Raises:
        UserError: If RESMLP_CPU_ISA names a kind that cannot run here.
    """
    wanted = os.environ.get("RESMLP_CPU_ISA", "").lower()
    if wanted not in ("", "none", *KINDS):
        raise UserError(f"RESMLP_CPU_ISA={wanted}? It is one of {', '.join(KINDS)} and none")
    # With none not even a broken file is looked at.
    library = None if wanted == "none" else find_library()
    for kind in KINDS:
        if wanted in ("", kind) and library and getattr(library, f"has_{kind}")():
            return kind
    if wanted in KINDS:
        lacks = "this processor has none" if library else "the compiled code was not built"
        raise UserError(f"RESMLP_CPU_ISA={wanted}: {lacks}")
    return None


def load_function(name: str, *structures: str) -> Callable:
    """A function of the compiled code for this processor.

    Args:
        name: One of search, encode and classify.
        structures: Names of those that it takes, in the order of native/library.c.

    Raises:
        UserError: If there is none, or it was built for structures of other sizes, as where a newer
            version was put beside an older build.
    """
    kind = find_kind()
    if kind is None:
        if os.environ.get("RESMLP_CPU_ISA"):
            raise UserError("RESMLP_CPU_ISA=none: exports run in compiled code alone; unset it")
        raise UserError(
            f"exports run in compiled code, which was not built in {_FOLDER}: {HOW_TO_BUILD}"
        )
    library = find_library()
    try:
        built = (Integer * len(structures)).in_dll(library, f"{name}_structures")
    except ValueError:  # a build from before this check
        built = ()
    if [*built] != [ctypes.sizeof(STRUCTURES[name]) for name in structures]:
        raise UserError(
            f"the compiled code was built from other sources than these: {_BUILD_AGAIN}"
        )
    return getattr(library, f"{name}_{kind}")
