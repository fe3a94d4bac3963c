"""API keys, and how many requests a minute each of them may send."""

import math
import re
import sqlite3
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError

_REMARK = re.compile(r"(?:^|\s)#")
_PATIENCE = 0.1  # seconds to wait for the counts, which are held for microseconds
# A request of the key ?1 at the time ?2, in a minute that its first one begins.
_COUNT = """
INSERT INTO counts VALUES (?1, 1, ?2 + 60) ON CONFLICT DO UPDATE SET
count = iif(ends <= ?2, 1, count + 1), ends = iif(ends <= ?2, ?2 + 60, ends)
RETURNING count, ends
"""


def read_keys(path: Path, a_minute: int) -> dict[str, int]:
    """Read a file of keys: one a line, with its requests a minute behind it or not; 0 for any.

    Keys without a number have `a_minute`. A # at the start of a line or behind white space begins a
    remark.

    Raises:
        UserError: If the file is missing or broken, or holds no key.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = _REMARK.split(line, 1)[0].split()
        if not words:
            continue
        if len(words) > 2 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words[1:]):
            raise UserError(f"{path}, line {number}: not a key, or a key and a number")
        if words[0] in found:
            raise UserError(f"{path}, line {number}: this key came before")
        found[words[0]] = int(words[1]) if words[1:] else a_minute
    if not found:
        raise UserError(f"{path}: holds no key; write one a line")
    return found


class Keys:
    """Keys of which requests need one, if there are `known` ones.

    Args:
        known: Each with the number of requests that it may send in a minute, 0 for any.
        folder: Where all workers share what they count, whichever is killed; None: in memory.
    """

    def __init__(self, known: Mapping[str, int] = {}, folder: Path | None = None):
        self.known = {_digest(secret): a_minute for secret, a_minute in known.items()}
        path = folder / "keys.sqlite" if folder else ":memory:"
        self.counts = sqlite3.connect(
            path, isolation_level=None, timeout=_PATIENCE, check_same_thread=False
        )
        self.counts.execute("PRAGMA journal_mode = WAL")
        self.counts.execute("PRAGMA synchronous = OFF")
        self.counts.execute("CREATE TABLE IF NOT EXISTS counts (key PRIMARY KEY, count, ends)")

    def admit(self, given: str) -> None:
        """Count a request; HTTPException 403 for an unknown key, 429 for one used too often."""
        if not self.known:
            return
        if not given:
            raise HTTPException(403, "Please contact the server operator to get an API key")
        most = self.known.get(name := _digest(given))
        if most is None:
            raise HTTPException(403, "Invalid API key")
        if not most:
            return
        now = time.time()
        try:
            count, ends = self.counts.execute(_COUNT, (name, now)).fetchone()
        except sqlite3.OperationalError:  # where the counts stay locked, nobody is kept out
            return
        if count > most:
            said = f"Slowdown: {most} requests per 1 minute"
            raise HTTPException(429, said, {"Retry-After": str(max(1, math.ceil(ends - now)))})


def _digest(secret: str) -> str:
    """The hash that a key is looked up by: the time this takes tells nothing of the others."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
