"""API keys, and how many requests a minute each of them may send."""

import math
import re
import sqlite3
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter
from starlette.exceptions import HTTPException

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError

_REMARK = re.compile(r"(?:^|\s)#")
_PATIENCE = 0.1  # seconds to wait for the counts, which are held for microseconds


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


class SharedCounts(Storage):
    """Counts of `limits`, in memory or in a file that all workers share, whichever is killed."""

    base_exceptions = sqlite3.Error

    def __init__(self, folder: Path | None = None):
        super().__init__()
        path = folder / "keys.sqlite" if folder else ":memory:"
        self.file = sqlite3.connect(
            path, isolation_level=None, timeout=_PATIENCE, check_same_thread=False
        )
        self.file.execute("PRAGMA journal_mode = WAL")
        self.file.execute("PRAGMA synchronous = OFF")
        self.file.execute("CREATE TABLE IF NOT EXISTS counts (key PRIMARY KEY, count, ends)")

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count a request, in a window of `expiry` seconds that its first one begins."""
        return self._ask(
            "INSERT INTO counts VALUES (?1, ?2, ?3 + ?4) ON CONFLICT DO UPDATE SET"
            " count = iif(ends <= ?3, 0, count) + ?2, ends = iif(ends <= ?3, ?3 + ?4, ends)"
            " RETURNING count",
            (key, amount, time.time(), expiry),
        )

    def get(self, key: str) -> int:
        """The requests of a window."""
        return self._ask("SELECT count FROM counts WHERE key = ? AND ends > ?", (key, time.time()))

    def get_expiry(self, key: str) -> float:
        """When a window ends."""
        return self._ask("SELECT ends FROM counts WHERE key = ?", (key,))

    def _ask(self, query: str, values: tuple) -> float:
        return (self.file.execute(query, values).fetchone() or (0,))[0]

    def check(self) -> bool:
        """Whether it works."""
        return True

    def reset(self) -> None:
        """Forget all keys."""
        self.file.execute("DELETE FROM counts")

    def clear(self, key: str) -> None:
        """Forget a key."""
        self.file.execute("DELETE FROM counts WHERE key = ?", (key,))


class Keys:
    """Keys of which requests need one, if there are `known` ones.

    Each comes with the number of requests that it may send in a minute, 0 for any.
    """

    def __init__(self, known: Mapping[str, int] = {}, counts: Storage | None = None):
        self.known = {_digest(secret): a_minute for secret, a_minute in known.items()}
        self.limiter = FixedWindowRateLimiter(counts or SharedCounts())

    def admit(self, given: str) -> None:
        """Count a request; HTTPException 403 for an unknown key, 429 for one used too often."""
        if not self.known:
            return
        if not given:
            raise HTTPException(403, "Please contact the server operator to get an API key")
        most = self.known.get(name := _digest(given))
        if most is None:
            raise HTTPException(403, "Invalid API key")
        limit = RateLimitItemPerMinute(most or 1)
        try:
            if not most or self.limiter.hit(limit, name):
                return
            wait = self.limiter.get_window_stats(limit, name).reset_time - time.time()
        except sqlite3.OperationalError:  # where the counts stay locked, nobody is kept out
            return
        said = f"Slowdown: {most} requests per 1 minute"
        raise HTTPException(429, said, {"Retry-After": str(max(1, math.ceil(wait)))})


def _digest(secret: str) -> str:
    """The hash that a key is looked up by: the time this takes tells nothing of the others."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
