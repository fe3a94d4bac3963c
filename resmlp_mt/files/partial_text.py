"""Text that is made from lines, in steps, and goes on after the last step if it was stopped."""

import gzip
import hashlib
import json
import logging
import lzma
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from resmlp_mt.errors import UserError
from resmlp_mt.files.claim import lock
from resmlp_mt.files.output import (
    creating,
    find_mode,
    follow_links,
    naming,
    open_stream,
    prepare_target,
    whole_file,
)

logger = logging.getLogger(__name__)

# A step of fewer bytes waits for the next one, so that it compresses well.
_SHORT = 2**14
_PACKERS = {".gz": lambda data: gzip.compress(data, mtime=0), ".xz": lzma.compress}


@contextmanager
def open_text(path: Path, options: dict, resume: bool) -> Iterator["TextStream"]:
    """Yield a `PartialText`, or a `TextStream` where the file is no regular one and keeps nothing.

    Raises:
        UserError: If it cannot be written, or not be continued.
    """
    target = prepare_target(path)
    stream, pack = open_stream(path), _PACKERS.get(path.suffix)
    if stream is not None and resume:
        stream.close()
        raise UserError(f"{path}: no regular file, so that nothing is kept to --resume from")
    text = TextStream(stream, pack) if stream else PartialText(target, options, resume, pack)
    with naming(path), text:
        yield text


def is_finished(path: Path) -> bool:
    """Whether the file is there, and no stopped run was making it anew."""
    return path.is_file() and not _part_of(follow_links(path)).exists()


def _part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


class TextStream:
    """Text written in steps.

    Args:
        stream: Where to; it is closed in the end.
        pack: Compresses a step, so that the steps one after another are a compressed file.
    """

    lines = 0  # of which the text is there already

    def __init__(self, stream: BinaryIO, pack=None):
        self.stream, self.pack, self.step = stream, pack or bytes, bytearray()
        self.is_empty = True  # even an empty compressed file has some bytes

    def follow(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines whose text is not there yet."""
        yield from lines

    def write(self, text: str) -> None:
        """Add text."""
        self.step += text.encode()

    def flush(self) -> None:
        """End a step: all lines that were read are in the text."""
        if self.pack is not bytes and len(self.step) < _SHORT:
            return
        self.stream.write(self.pack(self.step))
        self.stream.flush()
        self.step.clear()
        self.is_empty = False

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> None:
        """Write what is left of a step if all went well, and close the stream."""
        with self.stream:
            if kind is None:
                self._finish()

    def _finish(self) -> None:
        if self.step or self.is_empty:
            self.stream.write(self.pack(self.step))
        self.stream.flush()


class PartialText(TextStream):
    """Text that is made from lines, in steps, and goes on after the last step if it was stopped.

    It grows in PATH.part; PATH.part.json says how far it is. PATH appears when the block of this
    context manager ends without error.

    Args:
        path: The file to make, as `prepare_target` found it. It may be there: then it is replaced.
        options: Settings that the text depends on. A part that was made with others is not
            continued.
        resume: Go on with a part that is there.
        pack: As for `TextStream`.

    Raises:
        UserError: If another run makes the file, or there is a part that shall not or cannot be
            continued.
    """

    def __init__(self, path: Path, options: dict, resume: bool, pack=None):
        self.path, self.options, self.digest = path, options, hashlib.sha256()
        self.part = _part_of(path)
        self.state = self.part.with_name(f"{self.part.name}.json")
        with creating(path):
            stream = _open_alone(self.part, find_mode(path))
        super().__init__(stream, pack)
        try:
            # Read under the lock: another run may have finished just before.
            before = self._read_state()
            self.saved = before["bytes"]
            if self.saved:
                self._check(before, resume)
            else:
                self._save(0)
            self.lines = self.begun = before["lines"]
            self.expected, self.is_empty = before["sha256"], self.saved == 0
            self.stream.truncate(self.saved)  # what came after the last step
            self.stream.seek(self.saved)
        except BaseException:
            self.stream.close()
            raise

    def _read_state(self) -> dict:
        """How far the part is, if it is begun."""
        if not os.fstat(self.stream.fileno()).st_size:
            return {"lines": 0, "bytes": 0, "sha256": self.digest.hexdigest()}
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            state = {name: state[name] for name in ("lines", "bytes", "sha256", "options")}
            if self.part.stat().st_size >= state["bytes"]:
                return state
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass
        raise UserError(  # it may be of somebody else: downloads are called so too
            f"{self.part}: in the way, and no part of {self.path} to go on from; move it away"
        )

    def _check(self, before: dict, resume: bool) -> None:
        """Refuse a part that shall not or cannot be continued."""
        if not resume:
            raise UserError(
                f"{self.part}: left by a run that was stopped; go on with --resume, or remove it"
            )
        was = before["options"]
        if changed := [name for name in self.options if was.get(name) != self.options[name]]:
            raise UserError(f"{self.part} was begun with another {', '.join(changed)}; remove it")

    def _save(self, size: int) -> None:
        """Say how far the part is. From its first byte on, so that it is known as ours."""
        state = {"lines": self.lines, "bytes": size, "sha256": self.digest.hexdigest()}
        with whole_file(self.state) as new:
            new.write_text(json.dumps(state | {"options": self.options}), encoding="utf-8")
        self.saved = size

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
                f"{self.part}: of other lines than the first {self.lines:,} of these; remove it"
            )
        for line in lines:
            self.digest.update(line.encode() + b"\n")
            self.lines += 1
            yield line

    def flush(self) -> None:
        """End a step: all lines that were read are in the text."""
        super().flush()
        if not self.step:
            self._save(self.stream.tell())

    def __exit__(self, kind, error, trace) -> None:
        """Rename the part if all went well. Remove it if nothing is in it yet."""
        # Closed last: until then its lock keeps other runs away.
        with self.stream:
            if kind is None:
                self._finish()
                os.chmod(self.part, find_mode(self.path))
                os.replace(self.part, self.path)
                self.state.unlink(missing_ok=True)
            elif not self.saved:
                self.part.unlink()
                self.state.unlink(missing_ok=True)
            elif self.lines > self.begun or not isinstance(error, UserError):
                logger.warning(
                    "%s: stopped half way; the same command with --resume goes on", self.part
                )


def _open_alone(path: Path, mode: int) -> BinaryIO:
    """Open a file that no other process has opened so; a new one has the bits of `mode`."""
    stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, mode | 0o600), "r+b")
    # Whoever had it may have finished, and renamed it, before it was locked.
    alone = lock(stream.fileno()) and path.exists()
    if alone and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
        return stream
    stream.close()
    raise UserError(
        f"{path}: another run is at work on it; wait for its end, or write to another file"
    )
