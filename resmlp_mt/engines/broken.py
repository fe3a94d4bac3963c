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


def _explain(folder: Path | str, error: Exception) -> BrokenModel:
    """What to raise for an export that cannot be read, or computed with."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if _is_of_onnxruntime(error) and type(error).__name__ not in _OF_GRAPHS:
        version = sys.modules["onnxruntime"].__version__
        return BrokenModel(
            f"{folder}: ONNX Runtime {version} cannot run this export (... {reason[-200:]}); "
            "install another version of it, or export the model again"
        )
    return BrokenModel(f"{folder}: a broken export ({reason:.300}); export the model again")


def _is_of_onnxruntime(error: Exception) -> bool:
    """Whether ONNX Runtime raised it."""
    return type(error).__module__.startswith("onnxruntime.")


@contextmanager
def computing(folder: Path | str, *faults: type[Exception]) -> Iterator[None]:
    """Raise what cannot be computed, or read, as an error that names the folder of an export.

    What is no fault of it, as a lack of memory, is raised as it is.

    Args:
        folder: The export.
        faults: What else is one, as where a file is read that anybody may have written.
    """
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: missing; export the model again") from None
    except Exception as error:
        if not (isinstance(error, _OF_NUMPY + faults) or _is_of_onnxruntime(error)):
            raise
        raise _explain(folder, error) from error
