"""Output that appears whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resmlp_mt.errors import UserError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it takes the place of `path` when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path, mark: str) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of `path` when the block ends without error.

    Args:
        path: The folder to make, or to make anew.
        mark: A file that every folder of this kind holds.

    Raises:
        UserError: If `path` exists and holds something else.
    """
    if path.exists() and not (
        path.is_dir() and (not any(path.iterdir()) or (path / mark).exists())
    ):
        raise UserError(
            f"{path} holds something else (no {mark} in it); name another folder, or empty this one"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new, old = work / "new", work / "old"
        new.mkdir()
        yield new
        try:
            if path.exists():
                os.rename(path, old)
            os.rename(new, path)
        except BaseException:  # an interrupt between the two must not cost the old one
            if old.exists() and not path.exists():
                os.rename(old, path)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
