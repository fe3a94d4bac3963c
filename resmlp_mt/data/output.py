"""Output that appears whole or not at all."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
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


class PartialText:
    """Text that is made from lines, in steps, and goes on after the last step if it was stopped.

    It grows in PATH.part; PATH.part.json says how far it is. PATH appears when the block of this
    context manager ends without error.

    Args:
        path: The file to make.
        options: What the text depends on beside the lines. A part that was made with others is not
            continued.
        resume: Go on with a part that is there.

    Raises:
        UserError: If there is a part and it shall not or cannot be continued.
    """

    def __init__(self, path: Path, options: dict, resume: bool):
        self.path, self.options = path, options
        self.part, self.state = (Path(f"{path}.part{suffix}") for suffix in ("", ".json"))
        self.lines, self.digest, size = 0, hashlib.sha256(), 0
        self.expected = self.digest.hexdigest()
        if self.state.exists() and not resume:
            raise UserError(
                f"{self.part}: left by a run that was stopped; go on with --resume, or remove it"
            )
        if self.part.exists() and self.state.exists():
            size = self._load()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.stream = open(self.part, "r+b" if size else "wb")  # noqa: SIM115 - closed on exit
        self.stream.truncate(size)  # what came after the last step
        self.stream.seek(size)

    def _load(self) -> int:
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            self.lines, self.expected, size = state["lines"], state["sha256"], state["bytes"]
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.state}: broken; remove it and {self.part}") from None
        changed = [k for k, v in self.options.items() if state.get("options", {}).get(k) != v]
        if changed:
            was = state.get("options", {}).get(changed[0])
            raise UserError(
                f"{self.part} was begun with {changed[0]} {was}, not {self.options[changed[0]]}: "
                "give the same options, or remove it"
            )
        if self.part.stat().st_size < size:
            raise UserError(f"{self.part}: shorter than it was; remove it")
        return size

    def follow(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines whose text is not there yet; the others are read past.

        Raises:
            UserError: If they are not those that the part was made from.
        """
        lines = iter(lines)
        found = 0
        for line in islice(lines, self.lines):
            self.digest.update(line.encode() + b"\n")
            found += 1
        if (found, self.digest.hexdigest()) != (self.lines, self.expected):
            raise UserError(
                f"{self.part} was made from other lines than the first {self.lines:,} of this "
                "input: give the same input, or remove it"
            )
        for line in lines:
            self.digest.update(line.encode() + b"\n")
            self.lines += 1
            yield line

    def write(self, text: str) -> None:
        """Add text."""
        self.stream.write(text.encode())

    def flush(self) -> None:
        """End a step: all lines that were read are in the text."""
        self.stream.flush()
        state = {
            "lines": self.lines,
            "bytes": self.stream.tell(),
            "sha256": self.digest.hexdigest(),
            "options": self.options,
        }
        with whole_file(self.state) as new:
            new.write_text(json.dumps(state), encoding="utf-8")

    def __enter__(self) -> "PartialText":
        return self

    def __exit__(self, kind, error, trace) -> None:
        """Give it its name if all went well; leave nothing behind if there is nothing yet."""
        self.stream.close()
        if kind is None:
            os.replace(self.part, self.path)
            self.state.unlink(missing_ok=True)
        elif not self.state.exists():
            self.part.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
