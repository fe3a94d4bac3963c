"""Exports that cannot be computed with, as the user's errors that they are."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resmlp_mt.errors import BrokenModel, UserError

_OF_NUMPY = (ValueError, IndexError)  # and of our own checks, for arrays that do not fit


def _is_of_onnxruntime(error: Exception) -> bool:
    """Whether ONNX Runtime raised it. Its errors have nothing in common but their module."""
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
        reason = " ".join(str(error).split()) or type(error).__name__
        advice = "export the model again"
        if _is_of_onnxruntime(error):
            version = sys.modules["onnxruntime"].__version__
            reason, advice = reason[-200:], f"{advice}, or install another ONNX Runtime ({version})"
        raise BrokenModel(f"{folder}: a broken export ({reason:.300}); {advice}") from error
