"""Exports that are broken, as the user's errors that they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resmlp_mt.errors import BrokenModel, UserError

# What NumPy and our own checks raise for arrays that do not fit. ONNX Runtime's errors have nothing
# in common but their module.
_OF_NUMPY = (ValueError, IndexError)


def explain_broken(folder: Path | str, error: Exception) -> BrokenModel:
    """What to raise for an export that cannot be read, or computed with."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return BrokenModel(f"{folder}: a broken export ({reason:.300}); export the model again")


@contextmanager
def computing(folder: Path | str) -> Iterator[None]:
    """Raise what a graph cannot compute as a fault of the export in this folder.

    What is no fault of it, as a lack of memory, is raised as it is.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not (isinstance(error, _OF_NUMPY) or type(error).__module__.startswith("onnxruntime.")):
            raise
        raise explain_broken(folder, error) from error
