"""Output that appears whole or not at all."""

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.claim import claim_folder, release_folder

# What the system says of a disk, a quota or a limit of files that is full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_CARD = "README.md"  # what people say of a model or of data

# What is being written, under names of its own.
_unfinished: set[Path] = set()


def abandon() -> None:
    """Remove what is being written, for a process that ends without leaving its blocks."""
    for path in _unfinished:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder for temporary files, which is removed when the block ends.

    A signal that raises leaves none, whenever it comes: tempfile's comes between the folder and its
    block.
    """
    folder = Path(tempfile.gettempdir()) / f"resmlp-mt.{secrets.token_hex(8)}"
    _unfinished.add(folder)
    try:
        folder.mkdir(0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unfinished.discard(folder)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it takes the place of `path` when the block ends without error.

    A link stays, and what it leads to is replaced. A device or a pipe stays too, and is written to
    when the block ends.

    Raises:
        UserError: As `prepare_target`.
    """
    target = prepare_target(path)
    if stream := open_stream(path):
        with naming(path), stream, scratch_folder() as folder:
            yield folder / "new"
            with open(folder / "new", "rb") as new:
                shutil.copyfileobj(new, stream)
        return
    _unfinished.add(new := target.with_name(f".{target.name}.{secrets.token_hex(4)}"))
    try:  # an interrupt from here on leaves nothing
        with creating(path):
            os.close(os.open(new, os.O_CREAT | os.O_EXCL, 0o600))
        with naming(path):
            yield new
        os.chmod(new, find_mode(target))
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)
        _unfinished.discard(new)


@contextmanager
def whole_folder(path: Path, mark: str, *others: str) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of `path` when the block ends without error.

    A README.md in it stays, since people write it. What a process that was killed left of its work
    on `path` is removed, and an old folder that it had moved is put back.

    Args:
        path: The folder to make, or to make anew; or a link to it, which stays.
        mark: A file that every folder of this kind holds.
        *others: Patterns of the names of all else that such folders hold, as "*.bin" or, of what
            lies in a folder of it, "raw/*.en".

    Raises:
        UserError: If `path` exists and holds something else, which would be lost, if another
            process makes it, or if it cannot be made.
    """
    target = follow_links(path)
    work = target.with_name(f".{target.name}.new")
    new, old = work / "new", work / "old"
    with creating(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        work.mkdir(0o700, exist_ok=True)
    if not claim_folder(work):
        raise UserError(f"{path}: another run is at work on it; wait for its end")
    _unfinished.add(work)
    try:  # an interrupt from here on leaves nothing
        if old.is_dir() and not target.exists():  # killed between the renames
            os.rename(old, target)
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        _refuse_loss(target, mark, _CARD, *others)
        new.mkdir()
        with naming(path):
            yield new
            if (target / _CARD).is_file():
                shutil.copy(target / _CARD, new)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
    finally:
        if old.is_dir() and not target.exists():  # interrupted between the renames
            os.rename(old, target)
        with suppress(FileNotFoundError):
            release_folder(work)
        shutil.rmtree(work, ignore_errors=True)
        _unfinished.discard(work)


def _refuse_loss(path: Path, mark: str, *others: str) -> None:
    """Refuse a folder without the mark, or with more than names of these patterns."""
    if not path.exists():
        return
    if path.is_file():
        raise UserError(f"{path}: a file; name a folder")
    patterns = (mark, *others) if (path / mark).exists() else ()
    known = {found for pattern in patterns for found in path.glob(pattern)}
    within = {found.parent for found in known} - {path}
    held = [entry for folder in (path, *within) for entry in folder.iterdir()]
    if own := [e.relative_to(path) for e in held if e not in known and e not in within]:
        raise UserError(
            f"{path} would be made anew, and loses {name_some(sorted(map(str, own)))}; move that "
            "away, or name another folder"
        )
    with suppress(FileNotFoundError):  # the working folder may have been removed
        if Path.cwd().is_relative_to(path.resolve()):
            raise UserError(f"{path} is in use: it holds the working folder; name another folder")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name what is written where the disk is full, of which the system says no name."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def creating(path: Path) -> Iterator[None]:
    """Refuse a place that takes no new file or folder, as below a file, or in /proc.

    Raises:
        UserError: If what is made in the block, to become `path` or lie beside it, cannot be.
    """
    try:
        yield
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path}: cannot be made ({error}); write to another folder") from None


def prepare_target(path: Path) -> Path:
    """Follow links to the file to write, and make its folder.

    Called before work that takes long, it refuses at once what cannot be written in the end.

    Raises:
        UserError: If it is a folder, or cannot be made.
    """
    target = follow_links(path)
    if target.is_dir():
        raise UserError(f"{path}: a folder; name a file")
    with creating(path):
        target.parent.mkdir(parents=True, exist_ok=True)
    return target


def follow_links(path: Path) -> Path:
    """The file or folder that a name stands for, which need not be there.

    Raises:
        UserError: If it is mounted, as a container's volume: nothing can take its place.
    """
    target = Path(os.path.realpath(path))
    if os.path.ismount(target) and (target.is_file() or target.is_dir()):
        raise UserError(f"{path} is a mount, which cannot be replaced; name what lies elsewhere")
    return target


def open_stream(path: Path) -> BinaryIO | None:
    """Open what is written to as it is: a device, a pipe, or where standard output goes."""
    if not path.exists():
        return None
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(os.fstat(number), path.stat()):
                # To open it by its name would write from its start.
                return os.fdopen(os.dup(number), "wb")
    return None if path.is_file() else open(path, "wb")


def refuse_overwriting(path: Path, sources: Iterable[Path | int]) -> None:
    """Refuse to write to a file that is read: by a path, a descriptor, or in a folder.

    Raises:
        UserError: If it is one of the sources.
    """
    for source in sources:
        with suppress(OSError):  # `path` may be new; a missing source is noticed when it is read
            if path.is_file() and _is_of(path, source):
                raise UserError(f"{path}: would be read and written; write to another file")


def _is_of(path: Path, source: Path | int) -> bool:
    if not isinstance(source, int) and os.path.isdir(source):
        return path.resolve().is_relative_to(Path(source).resolve())
    return os.path.samestat(path.stat(), os.stat(source))


def find_mode(path: Path) -> int:
    """The permission bits of what is written there: those of the file it replaces, if any."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
