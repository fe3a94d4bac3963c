"""Output that appears whole or not at all."""

import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.claim import claim_abandoned, claim_folder, release_folder

# What the system says of a disk, a quota or a limit of files that is full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Endings that say of a file that it is compressed.
_PACKED = ".gz .xz .bz2 .zst .zip .7z .lz .lz4 .lzma .lzo .br .z .rar .tgz .txz .tbz .tbz2".split()

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
    given, path = path, prepare_target(path)
    if stream := open_stream(path):
        with naming(given), stream, scratch_folder() as folder:
            yield folder / "new"
            with open(folder / "new", "rb") as new:
                shutil.copyfileobj(new, stream)
        return
    _unfinished.add(new := _name_beside(path))
    try:  # an interrupt from here on leaves nothing
        with creating(path):
            os.close(os.open(new, os.O_CREAT | os.O_EXCL, 0o600))
        with naming(given):
            yield new
        os.chmod(new, find_mode(path))
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
        _unfinished.discard(new)


@contextmanager
def whole_folder(path: Path, mark: str, *others: str) -> Iterator[Path]:
    """Yield a folder to fill; it takes the place of `path` when the block ends without error.

    A README.md in it stays, since people write it. What processes that were killed left of their
    work on `path` is removed, and an old folder that one of them had moved is put back.

    Args:
        path: The folder to make, or to make anew; or a link to it, which stays.
        mark: A file that every folder of this kind holds.
        *others: Patterns of the names of all else that such folders hold, as "*.bin" or, of what
            lies in a folder of it, "raw/*.en".

    Raises:
        UserError: If `path` exists and holds something else, which would be lost, or if it cannot
            be made.
    """
    given, path = path, follow_links(path)
    _remove_abandoned(path)
    _refuse_mounts(path)
    _refuse_loss(path, [mark, _CARD, *others])
    _make_parents(path, given)
    _unfinished.add(work := _name_beside(path))
    try:  # an interrupt from here on leaves nothing
        with creating(path):
            work.mkdir(0o700)
        claim_folder(work)
        new, old = work / "new", work / "old"
        new.mkdir()
        with naming(given):
            yield new
            if (path / _CARD).is_file():
                shutil.copy(path / _CARD, new)
        try:
            if path.exists():
                os.rename(path, old)
            os.rename(new, path)
        except BaseException:  # an interrupt between the renames must not lose the old one
            if old.exists() and not path.exists():
                os.rename(old, path)
            raise
    finally:
        with suppress(FileNotFoundError):
            release_folder(work)
        shutil.rmtree(work, ignore_errors=True)
        _unfinished.discard(work)


def _remove_abandoned(path: Path) -> None:
    """Remove what killed processes left beside a folder that they made."""
    for work in path.parent.glob(f".{glob.escape(path.name)}.{8 * '[0-9a-f]'}"):
        new, old = (work / name for name in ("new", "old"))
        # Without either, its process may not have come to claim it.
        if work.is_symlink() or not (new.is_dir() or old.is_dir()) or not claim_abandoned(work):
            continue
        if new.is_dir() and old.is_dir() and not path.exists():  # killed between the renames
            os.rename(old, path)
        release_folder(work)
        shutil.rmtree(work, ignore_errors=True)


def _refuse_loss(path: Path, names: list[str]) -> None:
    """Refuse a folder that cannot be replaced, or holds more than names of this kind.

    Args:
        path: The folder, which need not be there.
        names: Patterns. The first is the mark of the kind.
    """
    if not path.exists():
        return
    held = sorted(_list_names(path, names)) if path.is_dir() else [path.name]
    if held and not (path / names[0]).exists():
        raise UserError(
            f"{path} holds something else (no {names[0]} in it); name another folder, or empty "
            "this one"
        )
    if own := [name for name in held if not any(_is_like(name, known) for known in names)]:
        raise UserError(
            f"{path} would be made anew, and loses {name_some(own)}; move that away, or name "
            "another folder"
        )
    with suppress(FileNotFoundError):  # the working folder may have been removed
        if Path.cwd().is_relative_to(path.resolve()):
            raise UserError(f"{path} is in use: it holds the working folder; name another folder")


def _list_names(folder: Path, patterns: list[str]) -> Iterator[str]:
    """What lies in a folder, and in those folders of it that patterns look into."""
    looked_into = {pattern.partition("/")[0] for pattern in patterns if "/" in pattern}
    for entry in folder.iterdir():
        if entry.name in looked_into and entry.is_dir() and not entry.is_symlink():
            yield from (f"{entry.name}/{inner.name}" for inner in entry.iterdir())
        else:
            yield entry.name


def _is_like(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and fnmatchcase(name, pattern)


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
    """Refuse a folder that takes no new files, such as /proc, which calls them missing.

    Raises:
        UserError: If what is made in the block, to become `path` or lie beside it, cannot be.
    """
    try:
        yield
    except FileNotFoundError:
        folder = next(p for p in path.absolute().parents if p.is_dir())
        raise UserError(f"{path}: {folder} takes no new files; write to another folder") from None


def _name_beside(path: Path) -> Path:
    """A hidden name that nobody else has, for what will take the place of `path`."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)}"


def prepare_target(path: Path, packed: Collection[str] = ()) -> Path:
    """Follow links to the file to write, and make its folder.

    Called before work that takes long, it refuses at once what cannot be written in the end.

    Args:
        path: What the user names.
        packed: Endings with which whoever writes it compresses it.

    Raises:
        UserError: If it is a folder, cannot be made, or has the ending of a compressed file, which
            it would not be.
    """
    suffix = path.suffix
    if suffix.lower() in _PACKED and suffix not in packed:
        others = f", or let its name end in {' or '.join(packed)}" if packed else ""
        raise UserError(
            f"{path}: would not be compressed, as {suffix} says; name it plainly{others}"
        )
    target = follow_links(path)
    if target.is_dir():
        raise UserError(f"{path}: a folder; name a file")
    if target.is_file():
        _refuse_mounts(target)
    _make_parents(target, path)
    return target


def _refuse_mounts(path: Path) -> None:
    """Refuse what is mounted, as a container's volume: nothing can take its place."""
    table = Path("/proc/self/mountinfo")
    if not path.exists() or not table.exists():
        return
    # Its fifth field, in which blanks and the like are octal numbers.
    fields = (line.split()[4] for line in table.read_bytes().splitlines())
    mounted = {re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), f) for f in fields}
    if os.fsencode(path.resolve()) in mounted:
        within = "a folder within it" if path.is_dir() else "a file elsewhere"
        raise UserError(f"{path} is a mount, which cannot be replaced; name {within}")


def _make_parents(target: Path, given: Path) -> None:
    """Make the folder that it lies in. given: what the user calls it."""
    try:
        with creating(given):
            target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(p for p in target.parents if p.exists() or p.is_symlink())
        raise UserError(f"{given}: {file} is no folder") from None


def follow_links(path: Path) -> Path:
    """The file that a name stands for, which need not be there.

    Links end at an open file of this process, such as /dev/stdout or the shell's `>(command)`.

    Raises:
        UserError: If a link leads back to itself.
    """
    target = path
    for _ in range(40):
        if not target.is_symlink() or _is_open_file(target):
            return target
        target = target.parent / target.readlink()
    raise UserError(f"{path}: a link that leads back to itself")


def open_stream(target: Path) -> BinaryIO | None:
    """Open what `prepare_target` found if it is no regular file: a device, a pipe, an open file.

    Raises:
        UserError: If it names a file of this process that is not open.
    """
    if _is_open_file(target):
        try:
            # To open it by its name would write from its start.
            return os.fdopen(os.dup(int(target.name)), "wb")
        except OSError as error:
            raise UserError(f"{target}: {error.strerror}") from None
    return open(target, "wb") if target.exists() and not target.is_file() else None


def _is_open_file(path: Path) -> bool:
    here = os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd")
    return here and path.name.isdecimal()


def refuse_overwriting(path: Path, sources: Iterable[Path | int]) -> None:
    """Refuse to write to a file that is read.

    Args:
        path: What shall be written.
        sources: Paths, or descriptors of open files. Of a folder all files are read.

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
