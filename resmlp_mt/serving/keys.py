"""API keys, and how many requests a minute each of them may send."""

import hmac
import math
import re
import time
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from starlette.exceptions import HTTPException

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError

# Seconds to wait for the counts, which take microseconds.
_PATIENCE = 0.1
_REMARK = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True)
class Key:
    """A key, and the requests that it may send in a minute; 0 for any number."""

    secret: str
    a_minute: int


def read_keys(path: Path, a_minute: int) -> list[Key]:
    """Read a file of keys: one a line, with a number of its own behind it or not.

    A # at the start of a line or behind white space begins a remark.

    Args:
        path: The file.
        a_minute: The limit of keys without a number.

    Raises:
        UserError: If the file is missing or broken, or holds no key.
    """
    found: dict[str, Key] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = _REMARK.split(line, 1)[0].split()
        if not words:
            continue
        if len(words) > 2 or not all(word.isdecimal() for word in words[1:]):
            raise UserError(f"{path}, line {number}: not a key, or a key and a number")
        if words[0] in found:
            raise UserError(f"{path}, line {number}: this key came before")
        found[words[0]] = Key(words[0], int(words[1]) if words[1:] else a_minute)
    if not found:
        raise UserError(f"{path}: holds no key; write one a line")
    return list(found.values())


def find_key(headers: Mapping[str, str]) -> str:
    """The key in the headers of a request; empty if there is none."""
    kind, _, key = headers.get("Authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""


class Keys:
    """Who may ask, and how often.

    Each key has a bucket of as many requests as it may send in a minute, which fills again evenly.

    Args:
        keys: Empty if all may ask.
        buckets: Two numbers a key: how full its bucket was, and when. Several processes may share
            them. At first zero, which stands for a full bucket.
        lock: Guards them. A request is not counted where it stays locked.
        clock: Tells the time in seconds; of all processes alike.
    """

    def __init__(
        self,
        keys: Sequence[Key] = (),
        buckets: MutableSequence[float] | None = None,
        lock=None,
        clock=time.monotonic,
    ):
        self.keys, self.clock = keys, clock
        self.buckets = [0.0] * (2 * len(keys)) if buckets is None else buckets
        self.lock = lock or Lock()

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self.keys)

    def admit(self, given: str) -> None:
        """Count a request.

        Raises:
            HTTPException: 403 if the key is not known, 429 if it has sent too much.
        """
        if not self.keys:
            return
        if not given:
            raise HTTPException(403, "Please contact the server operator to get an API key")
        found = None
        for number, key in enumerate(self.keys):  # all of them: the time tells nothing
            if hmac.compare_digest(key.secret.encode(), given.encode("utf-8", "replace")):
                found = number
        if found is None:
            raise HTTPException(403, "Invalid API key")
        wait = self._take(found)
        if wait > 0:
            message = f"Slowdown: {self.keys[found].a_minute} requests per 1 minute"
            raise HTTPException(429, message, headers={"Retry-After": str(math.ceil(wait))})

    def _take(self, number: int) -> float:
        """Take a request out of a key's bucket; returns the seconds to wait if there is none."""
        most = self.keys[number].a_minute
        if not most:
            return 0
        # A worker that was killed meanwhile may hold it for ever.
        if not self.lock.acquire(timeout=_PATIENCE):
            return 0
        try:
            now = self.clock()
            left, then = self.buckets[2 * number : 2 * number + 2]
            left = min(most, left + (now - then) * most / 60) if then else most
            wait = (1 - left) * 60 / most
            if wait <= 0:
                left -= 1
            self.buckets[2 * number : 2 * number + 2] = [left, now]
        finally:
            self.lock.release()
        return wait
