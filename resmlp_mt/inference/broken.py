"""Exports that are broken, as the user's errors that they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resmlp_mt.errors import UserError
from resmlp_mt.inference.stopping import Stopped


def explain_broken(folder: Path | str, error: Exception) -> UserError:
    """What to raise for an export that cannot be read, or computed with."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return UserError(f"{folder}: a broken export ({reason:.300}); export the model again")


@contextmanager
def computing(folder: Path | str) -> Iterator[None]:
    """Raise what a graph cannot compute as a fault of the export in this folder."""
    try:
        yield
    except (UserError, Stopped):
        raise
    except Exception as error:  # ONNX Runtime's errors have nothing else in common
        raise explain_broken(folder, error) from error
