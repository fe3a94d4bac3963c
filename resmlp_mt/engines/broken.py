"""Exports that cannot be computed with, as the user's errors that they are."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resmlp_mt.errors import BrokenModel, UserError

# What NumPy and our own checks raise for arrays that do not fit.
_OF_NUMPY = (ValueError, IndexError)
# ONNX Runtime's errors have nothing in common but their module. These are of graphs that are none.
_OF_GRAPHS = ("InvalidGraph", "InvalidProtobuf")


def explain_broken(folder: Path | str, error: Exception) -> BrokenModel:
    """What to raise for an export that cannot be read, or computed with."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if is_of_onnxruntime(error) and type(error).__name__ not in _OF_GRAPHS:
        version = sys.modules["onnxruntime"].__version__
        return BrokenModel(
            f"{folder}: ONNX Runtime {version} cannot run this export (... {reason[-200:]}); "
            "install another version of it, or export the model again"
        )
    return BrokenModel(f"{folder}: a broken export ({reason:.300}); export the model again")


def is_of_onnxruntime(error: Exception) -> bool:
    """Whether ONNX Runtime raised it."""
    return type(error).__module__.startswith("onnxruntime.")


@contextmanager
def computing(folder: Path | str) -> Iterator[None]:
    """Raise what a graph cannot compute as an error that names this folder.

    What is no fault of it, as a lack of memory, is raised as it is.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not (isinstance(error, _OF_NUMPY) or is_of_onnxruntime(error)):
            raise
        raise explain_broken(folder, error) from error
