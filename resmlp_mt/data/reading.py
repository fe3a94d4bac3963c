"""Raw text, plain or compressed, read with its mistakes named by file and line."""

import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import BinaryIO

from resmlp_mt.errors import UserError

# Openers that unpack a file on the way, by the ending of its name.
OPENERS = {".gz": gzip.open, ".xz": lzma.open}
_BLOCK = 4096  # lines
# The first bytes of files that are no text: their kind, and the command that makes text of them.
_BEGINNINGS = {
    codecs.BOM_UTF16_LE: ("UTF-16, not UTF-8", "convert it with 'iconv -f UTF-16 -t UTF-8'"),
    codecs.BOM_UTF16_BE: ("UTF-16, not UTF-8", "convert it with 'iconv -f UTF-16 -t UTF-8'"),
    b"\x1f\x8b": ("a gzip archive", "let its name end in .gz"),
    b"\xfd7zXZ": ("an xz archive", "let its name end in .xz"),
    b"\x28\xb5\x2f\xfd": ("a Zstandard archive", "unpack it with 'zstd -d'"),
    b"BZh": ("a bzip2 archive", "unpack it with 'bunzip2'"),
}


def decode_lines(stream: Iterable[bytes], name: str, first: int = 1) -> Iterator[str]:
    """Yield the lines of a binary stream as text, without their line ends.

    The first line has the number `first`, and the stream is called `name`, in errors.

    Only a newline ends a line: text may hold other separators (U+2028, form feeds), which would
    put parallel files out of step. A byte order mark at the start is dropped.

    Raises:
        UserError: If a line is not UTF-8; names the stream and the line.
    """
    for number, line in enumerate(stream, first):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            for beginning, (kind, remedy) in _BEGINNINGS.items():
                if number == 1 and line.startswith(beginning):
                    raise UserError(f"{name}: {kind}; {remedy}") from None
            raise UserError(
                f"{name}, line {number}: not UTF-8 (byte {error.start + 1} of the line is "
                f"0x{line[error.start]:02x}); convert the file from its own encoding, for example "
                "with 'iconv -f SHIFT_JIS -t UTF-8' (others: LATIN1, WINDOWS-1251, GB18030)"
            ) from None
        yield text.rstrip("\r\n")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; .gz and .xz are unpacked on the way.

    Raises:
        UserError: If the file is missing, broken or not UTF-8.
    """
    yield from decode_lines(_open_lines(path), str(path))


@contextmanager
def open_packed(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes; .gz and .xz are unpacked on the way.

    Raises:
        UserError: If it is missing, a folder or broken, also while it is read in the block.
    """
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: a folder, not a text file") from None
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: broken archive ({error}); copy the file again") from None


def _open_lines(path: Path) -> Iterator[bytes]:
    with open_packed(path) as stream:
        yield from stream


def find_side(prefix: str, lang: str) -> Path:
    """The file of one language: PREFIX.LANG, PREFIX.LANG.gz or PREFIX.LANG.xz.

    Raises:
        UserError: If there is none.
    """
    plain = f"{prefix}.{lang}"
    for path in (plain, *(plain + suffix for suffix in OPENERS)):
        if Path(path).is_file():
            return Path(path)
    raise UserError(f"{plain}: no such file (nor {plain}.gz, {plain}.xz)")


def read_pairs(prefix: str, source_lang: str, target_lang: str) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of PREFIX.SOURCE and PREFIX.TARGET.

    Raises:
        UserError: As `read_blocks`, and if a line is not UTF-8.
    """
    for block in read_blocks(prefix, source_lang, target_lang):
        yield from zip(*block.decode(), strict=True)


@dataclass(frozen=True)
class Block:
    """Some lines of two parallel files, not decoded yet: what a process works on at once.

    Attributes:
        names: Of the files.
        first: Number of the first line.
        lines: Of each file.
    """

    names: tuple[str, str]
    first: int
    lines: tuple[list[bytes], list[bytes]]

    def __len__(self) -> int:
        """Pairs of lines."""
        return len(self.lines[0])

    def decode(self) -> tuple[list[str], list[str]]:
        """The lines as text, without their ends. A carriage return within one becomes a blank.

        A carriage return ends a line in Python, and so it would in a dictionary.

        Raises:
            UserError: If a line is not UTF-8; names the file and the line.
        """
        source, target = (
            [line.replace("\r", " ") for line in decode_lines(lines, name, self.first)]
            for lines, name in zip(self.lines, self.names, strict=True)
        )
        return source, target

    def check(self) -> None:
        """Raise the errors of `decode`, in less time."""
        try:
            for lines in self.lines:
                b"".join(lines).decode("utf-8")
        except UnicodeDecodeError:
            self.decode()


def read_blocks(prefix: str, source_lang: str, target_lang: str) -> Iterator[Block]:
    """Yield the lines of PREFIX.SOURCE and PREFIX.TARGET, many at once.

    Raises:
        UserError: If a side is missing, broken or empty, or they have different line counts.
    """
    paths = find_side(prefix, source_lang), find_side(prefix, target_lang)
    names = str(paths[0]), str(paths[1])
    streams = [_open_lines(path) for path in paths]
    counts = [0, 0]
    while any(lines := [list(islice(stream, _BLOCK)) for stream in streams]):
        block = Block(names, counts[0] + 1, (lines[0], lines[1]))
        if len(lines[0]) == len(lines[1]):
            yield block
        else:
            block.check()  # Text that is not UTF-8 has other lines: then that is the mistake.
        counts = [n + len(side) for n, side in zip(counts, lines, strict=True)]
    for path, count in zip(paths, counts, strict=True):
        if count == 0:
            raise UserError(f"{path}: empty file")
    if counts[0] != counts[1]:
        raise UserError(f"{paths[0]} has {counts[0]:,} lines and {paths[1]} has {counts[1]:,}")


def read_parallel(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two files, the second a translation of the first.

    Raises:
        UserError: If one cannot be read, or they have not as many lines, or none.
    """
    pairs = list(pair_lines(read_lines(source), read_lines(target), (source, target)))
    if not pairs:
        raise UserError(f"{source}: empty file")
    sources, targets = map(list, zip(*pairs, strict=True))
    return sources, targets


def pair_lines(
    sources: Iterable[str], targets: Iterable[str], names: tuple[Path, Path]
) -> Iterator[tuple[str, str]]:
    """Yield the lines of two texts side by side; messages have the names of the texts.

    Raises:
        UserError: If one of them ends first.
    """
    for number, pair in enumerate(zip_longest(sources, targets), 1):
        if None in pair:
            short = names[pair.index(None)]
            raise UserError(f"{short} ends before line {number:,}: texts need a line for a line")
        yield pair
