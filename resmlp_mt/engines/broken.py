"""Broken exports, reported as errors of the user."""

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
    """Turn errors of reading an export, or computing with it, into one that names its folder.

    Errors that are not the export's fault, as a lack of memory, are raised as they are.

    Args:
        folder: The export.
        faults: More types of errors that are its fault, as where a stranger may have written it.
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
