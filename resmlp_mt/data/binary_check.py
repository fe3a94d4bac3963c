"""Whether the files that fairseq trains from are whole: those of `prepare`, and fairseq's own."""

import json
import os
import struct
from functools import lru_cache
from pathlib import Path

import numpy as np

from resmlp_mt.errors import UserError
from resmlp_mt.files.sums import sum_files

REPORT_NAME = "report.json"
_HEADER = struct.Struct("<9sQBQ")  # magic, version, kind of numbers, sentences
MAGIC = b"MMIDIDX\0\0"
_OTHER_MAGICS = (b"TNTIDX\0\0", b"HUFFIDX\0")  # formats of fairseq that are left to it
_KINDS = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 8: "u2", 9: "u4", 10: "u8"}
_EOS = 2  # the index of </s> in every dictionary
_CURE = (
    "run 'resmlp-mt prepare' again, or fairseq-preprocess if that made it, or copy the folder again"
)


def check_pairs(folder: Path, split: str, langs: tuple[str, str], sizes: tuple[int, int]) -> None:
    """Refuse a split whose files are damaged, before anything reads them.

    The result is remembered for as long as the process lives, by size and time of the files.

    Args:
        folder: The prepared text.
        split: train, valid, test1 ...
        langs: Of source and target; the files may be named the other way round.
        sizes: Of their dictionaries.

    Raises:
        UserError: If a file is not what its index says, holds no sentences, or indices of no
            symbol, or is not what `prepare` has written there. It names the file.
    """
    counts = {}
    for pair in ("-".join(langs), "-".join(reversed(langs))):
        for lang, size in zip(langs, sizes, strict=True):
            stem = f"{folder}/{split}.{pair}.{lang}"
            there = [os.path.exists(f"{stem}.{kind}") for kind in ("idx", "bin")]
            if all(there):
                index, numbers = Path(f"{stem}.idx"), Path(f"{stem}.bin")
                counts[stem] = _count(index, _tell(index), numbers, _tell(numbers), size)
            elif any(there):
                raise UserError(f"{stem}.{'bin' if there[0] else 'idx'}: missing; {_CURE}")
        if counts:
            break  # as fairseq looks for them
    if None not in counts.values() and len(set(counts.values())) > 1:
        told = ", ".join(f"{count:,} in {stem}" for stem, count in counts.items())
        raise UserError(f"source and target differ in their number of sentences ({told}); {_CURE}")
    report = folder / REPORT_NAME
    if report.is_file():
        names = [Path(f"{stem}.{kind}").name for stem in counts for kind in ("bin", "idx")]
        names += [f"dict.{lang}.txt" for lang in langs]
        for name in filter(lambda name: (folder / name).is_file(), names):
            if not _is_as_written(report, _tell(report), folder / name, _tell(folder / name)):
                raise UserError(
                    f"{folder / name}: not what 'resmlp-mt prepare' wrote, by the SHA-256 in "
                    f"{report}; {_CURE}. If you changed it on purpose, remove {report}"
                )


def _tell(path: Path) -> tuple[int, int] | None:
    """A value that changes with a file."""
    if not path.is_file():
        return None
    about = path.stat()
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=1024)
def _count(index: Path, _index: tuple, numbers: Path, _numbers: tuple, size: int) -> int | None:
    """The number of sentences in a pair of files; None for a format that is left to fairseq."""
    data = np.fromfile(index, np.uint8)
    if bytes(data[:8]) in _OTHER_MAGICS:
        return None
    if len(data) < _HEADER.size:
        raise _damaged(index, "it ends within its header")
    magic, version, code, count = _HEADER.unpack_from(data)
    if magic != MAGIC or version != 1 or code not in _KINDS:
        raise _damaged(index, "it begins as no index of fairseq does")
    kind = np.dtype(_KINDS[code])
    if not count:
        raise _damaged(index, "it has no sentence")
    if len(data) != _HEADER.size + 12 * count:
        raise _damaged(index, f"it is no index of {count:,} sentences, by its size")
    sizes = np.frombuffer(data, "<i4", count, _HEADER.size)
    places = np.frombuffer(data, "<i8", count, _HEADER.size + sizes.nbytes)
    if (least := sizes.min()) < 1:
        raise _damaged(index, f"sentence {sizes.argmin() + 1:,} has {least:,} tokens")
    ends = np.cumsum(sizes, dtype=np.int64)
    if not np.array_equal(places, (ends - sizes) * kind.itemsize):
        raise _damaged(index, "its sentences do not stand one behind the other")
    length = numbers.stat().st_size
    if length != ends[-1] * kind.itemsize:
        raise _damaged(
            numbers,
            f"it has {length:,} bytes, and {index.name} tells of {ends[-1] * kind.itemsize:,}",
        )
    tokens = np.memmap(numbers, kind, "r")
    least, most = int(tokens.min()), int(tokens.max())
    if least < 0 or most >= size:
        wrong = least if least < 0 else most
        raise _damaged(numbers, f"it has the token {wrong:,}, and the dictionary {size:,} symbols")
    if len(open_ends := np.flatnonzero(tokens[ends - 1] != _EOS)):
        raise _damaged(numbers, f"sentence {open_ends[0] + 1:,} does not end with </s>")
    return count


def _damaged(path: Path, how: str) -> UserError:
    return UserError(f"{path}: damaged: {how}; {_CURE}")


@lru_cache(maxsize=4096)
def _is_as_written(report: Path, _report: tuple, path: Path, _path: tuple) -> bool:
    """Whether a file is what the report of `prepare` says, if it says anything."""
    try:
        sums = json.loads(report.read_text(encoding="utf-8"))["sha256"]
        written = sums.get(path.name)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # an older one
        return True
    return written in (None, sum_files(path.parent, [path.name])[path.name])
