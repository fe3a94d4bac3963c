"""Tar archives, read in place. Only their compression is unpacked. Errors name the fault."""

import gzip
import logging
import lzma
import os
import posixpath
import tarfile
import tempfile
import zlib
from array import array
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from resmlp_mt.errors import UserError, name_some

logger = logging.getLogger(__name__)

_UNPACKERS = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
# Members that hold the names and attributes of others; tarfile reads them whole.
_NOTES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_MAX_NOTE = 2**20
# Folders that file servers and systems put beside pictures, with previews in them.
_BESIDE = {"@eaDir", "__MACOSX", "#recycle", "$RECYCLE.BIN", "lost+found"}
# Temporary files, open for as long as this process lives.
_UNPACKED = []


class TarIndex(NamedTuple):
    """The places of the files and folders in a tar, but for hidden ones."""

    path: Path  # the tar, or what it was unpacked to
    names: list[str]  # without ./ at the start; those of folders end with a slash
    offsets: np.ndarray
    sizes: np.ndarray


class _Header(tarfile.TarInfo):
    """A header whose size can be true."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> "_Header":
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _NOTES and header.size > _MAX_NOTE):
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


def is_hidden(name: str) -> bool:
    """Whether a file or folder is none of the user's: its name has a dot first, or is known."""
    return name.startswith(".") or name in _BESIDE


def index_tar(path: Path) -> TarIndex:
    """Read the headers of a .tar, .tar.gz or .tar.xz.

    A compressed one is unpacked to a temporary file, for as long as this process lives.

    Raises:
        UserError: If the archive is missing, broken or of another kind, or has links to what is
            not in it, or to one another.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file or folder")
    return _index(path, (path.stat().st_mtime_ns, path.stat().st_size))


# Keep the last index: all splits need it, and ImageNet has a million headers.
@lru_cache(maxsize=1)
def _index(path: Path, stamp: tuple[int, int]) -> TarIndex:
    """Index a file. A change of the file changes `stamp`, and so the cached index."""
    with open(path, "rb") as stream:
        start = stream.read(6)
    plain = path
    for magic, unpacker in _UNPACKERS.items():
        if start.startswith(magic):
            plain = _unpack(path, unpacker, stamp)
    names, offsets, sizes, odd = [], array("q"), array("q"), []
    links = {}  # place of a link: the name it stands for
    size = plain.stat().st_size
    try:
        with (
            tarfile.open(plain, "r:", tarinfo=_Header) as tar,
            _bar("index", path, plain) as bar,
        ):
            while (member := tar.next()) is not None:
                if tar.offset > size:
                    raise tarfile.ReadError("it breaks off")
                tar.members.clear()  # else tarfile keeps them all
                bar.update(tar.offset - bar.n)
                if member.issparse():
                    raise tarfile.ReadError("a file with holes; pack it without --sparse")
                name = _normalise(member.name)
                if any(map(is_hidden, name.split("/"))):
                    continue
                if member.isdev():  # or a pipe
                    odd.append(name)
                    continue
                if member.issym():
                    folder = posixpath.dirname(name)
                    links[len(names)] = _normalise(posixpath.join(folder, member.linkname))
                elif member.islnk():
                    links[len(names)] = _normalise(member.linkname)
                names.append(name + "/" * member.isdir())
                offsets.append(member.offset_data)
                sizes.append(member.size)
            # tarfile takes a broken or missing header for the end of the archive.
            tar.fileobj.seek(tar.offset)
            if tar.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError("it breaks off")
    except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
        raise UserError(f"{path}: not a folder, nor a whole .tar, .gz or .xz ({error})") from None
    if odd:
        warn_of_odd(odd, str(path))
    places = {name: place for place, name in enumerate(names)} if links else {}
    for link in links:
        place, passed = link, {link}
        while place in links:
            name = links[place]
            if (place := places.get(name)) is None:
                raise UserError(
                    f"{path}:{names[link]}: a link to {name}, which is no file in the archive; "
                    "pack it with 'tar --dereference'"
                )
            if place in passed:
                raise UserError(f"{path}:{names[link]}: a link that leads back to itself")
            passed.add(place)
        offsets[link], sizes[link] = offsets[place], sizes[place]
    return TarIndex(plain, names, np.array(offsets), np.array(sizes))


def warn_of_odd(names: list[str], where: str) -> None:
    """Warn of what has a name among pictures and cannot be read."""
    logger.warning("%s: left out %s: a pipe, or a link that leads nowhere", where, name_some(names))


def _normalise(name: str) -> str:
    return posixpath.normpath(name).lstrip("/")


@lru_cache
def _unpack(path: Path, unpacker, stamp: tuple[int, int]) -> Path:
    out = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as this process lives
    try:
        with (
            open(path, "rb") as packed,
            unpacker(packed) as source,
            _bar("unpack", path, path) as bar,
        ):
            while block := source.read(2**20):
                out.write(block)
                bar.update(packed.tell() - bar.n)
            out.flush()
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: broken archive ({error}); copy the file again") from None
    except OSError as error:
        raise UserError(
            f"{path}: cannot be unpacked in {tempfile.gettempdir()} ({error.strerror}); set TMPDIR "
            "to a folder with more room"
        ) from None
    _UNPACKED.append(out)
    # A file without a name, which is gone however this process ends; its children find it here.
    return Path(f"/proc/{os.getpid()}/fd/{out.fileno()}")


def _bar(what: str, path: Path, read: Path) -> tqdm:
    return tqdm(
        desc=f"{what} {path.name}",
        total=read.stat().st_size,
        unit="B",
        unit_scale=True,
        disable=None,
        leave=False,
    )
