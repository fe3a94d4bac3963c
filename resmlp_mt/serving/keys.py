"""API keys, and how many requests a minute each of them may send."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.serving.buckets import Buckets
from resmlp_mt.serving.followed import FollowedFile

# A file holds no more: processes share memory for so many from their start on.
MOST_KEYS = 100_000
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
        UserError: If the file is missing or broken, or holds no key, or too many.
    """
    found: dict[str, Key] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = _REMARK.split(line, 1)[0].split()
        if not words:
            continue
        if len(words) > 2 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words[1:]):
            raise UserError(f"{path}, line {number}: not a key, or a key and a number")
        if words[0] in found:
            raise UserError(f"{path}, line {number}: this key came before")
        found[words[0]] = Key(words[0], int(words[1]) if words[1:] else a_minute)
    if not 0 < len(found) <= MOST_KEYS:
        said = "no key; write one a line" if not found else f"more than {MOST_KEYS:,} keys"
        raise UserError(f"{path}: holds {said}")
    return list(found.values())


def find_key(headers: Mapping[str, str]) -> str:
    """The key in the headers of a request; empty if there is none."""
    kind, _, key = headers.get("Authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""


def follow_keys(path: Path, a_minute: int) -> FollowedFile[list[Key]]:
    """A file of keys that may change. Arguments and mistakes as of `read_keys`."""
    return FollowedFile(path, partial(read_keys, a_minute=a_minute), "--api-keys", "the keys")


class Keys:
    """Who may ask, and how often.

    Args:
        read: The keys that there are now; none if all may ask. It returns the same ones until they
            change.
        buckets: What each of them may still send.
    """

    def __init__(self, read: Callable[[], Sequence[Key]] = tuple, buckets: Buckets | None = None):
        self.read, self.buckets = read, buckets or Buckets()
        self.known: Sequence[Key] = ()
        self.places: dict[bytes, int] = {}

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self.read())

    def admit(self, given: str) -> None:
        """Count a request.

        Raises:
            HTTPException: 403 if the key is not known, 429 if it has sent too much.
        """
        keys = self.read()
        if not keys:
            return
        if keys is not self.known:
            self._know(keys)
        if not given:
            raise HTTPException(403, "Please contact the server operator to get an API key")
        place = self.places.get(_digest(given))
        if place is None:
            raise HTTPException(403, "Invalid API key")
        most = keys[place].a_minute
        wait = self.buckets.take(place, most) if most else 0
        if wait > 0:
            message = f"Slowdown: {most} requests per 1 minute"
            raise HTTPException(429, message, headers={"Retry-After": str(math.ceil(wait))})

    def _know(self, keys: Sequence[Key]) -> None:
        digests = [_digest(key.secret) for key in keys]
        self.known, self.places = keys, {digest: place for place, digest in enumerate(digests)}
        # As many bits as a float holds.
        self.buckets.marks = [float(1 + int.from_bytes(digest[:6])) for digest in digests]


def _digest(secret: str) -> bytes:
    """What a key is looked up by: the time that this takes tells nothing of the keys there are."""
    return sha256(secret.encode("utf-8", "replace")).digest()
