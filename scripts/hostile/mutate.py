"""Mutations of bytes, of lines of text, and of nested values; all draw from the generator given."""

import copy
import math
from collections.abc import Callable
from random import Random
from typing import Any

_LENGTHS = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff" * 8)
_LENGTHS += (b"\xff" * 7 + b"\x7f", b"\x00\x00\x00\x00\x01\x00\x00\x00", b"\x00" * 4)
# What no reader expects to find.
VALUES = (
    None, True, False, -1, 0, 1, 2, 3, 7, 1000, 10**6, 2**31, 2**63, 10**30, 0.5, -1e308, math.nan,
    math.inf, "", "x", "\0", "../../etc/passwd", "/etc/passwd", "${oc.env:HOME}", "${task.data}",
    "linear", "en\n", "x" * 100_000, [], {}, [1, 2], [[]], {"_name": "x"}, ["x"] * 1000,
)  # fmt: skip
_WORDS = (
    "<s> 1", "</s> 1", "<pad> 1", "<unk> 5 #fairseq:overwrite", "<s> 1 #fairseq:overwrite", "x",
    "x y z", "x 1.5", "x -1", "x 99999999999999999999", " 1", "", "\t", "x\t1", "\0 1", "\u2028 1",
    "\ufeffx 1", "x\u0085y 1", "x " + "9" * 5000, "y" * 100_000 + " 1", "\x0c 1", "x 1\r", "x ١",
)  # fmt: skip


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Flip, cut, insert, repeat, zero: from one change to sixteen."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        data = rng.choice(_OF_BYTES)(rng, data)
    return data


def _place(rng: Random, data: bytes) -> int:
    """Anywhere, or in the first or the last 200 bytes, where headers and directories are."""
    near = min(200, len(data))
    places = (rng.randint(0, len(data)), rng.randint(0, near), len(data) - rng.randint(0, near))
    return rng.choice(places)


def _span(rng: Random, data: bytes) -> slice:
    start = _place(rng, data)
    return slice(start, start + int(2 ** rng.uniform(0, math.log2(len(data) + 2))))


def _put(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


def _flip(rng: Random, data: bytes) -> bytes:
    place = _place(rng, data)
    return (
        data[:place]
        + bytes(b ^ 1 << rng.randrange(8) for b in data[place:][:1])
        + data[place + 1 :]
    )


def _truncate(rng: Random, data: bytes) -> bytes:
    return data[: _place(rng, data)]


def _insert(rng: Random, data: bytes) -> bytes:
    place = _place(rng, data)
    return data[:place] + rng.randbytes(rng.randint(1, 64)) + data[place:]


def _scramble(rng: Random, data: bytes) -> bytes:
    return _put(data, _place(rng, data), rng.randbytes(rng.randint(1, 16)))


def _delete(rng: Random, data: bytes) -> bytes:
    span = _span(rng, data)
    return data[: span.start] + data[span.stop :]


def _repeat(rng: Random, data: bytes) -> bytes:
    span = _span(rng, data)
    place = _place(rng, data)
    return data[:place] + data[span] + data[place:]


def _zero(rng: Random, data: bytes) -> bytes:
    span = _span(rng, data)
    return data[: span.start] + bytes(len(data[span])) + data[span.stop :]


def _write_length(rng: Random, data: bytes) -> bytes:
    length = rng.choice(_LENGTHS)
    return _put(data, _place(rng, data), rng.choice((length, length[::-1])))


_OF_BYTES = (_flip, _flip, _truncate, _insert, _scramble, _delete, _repeat, _zero, _write_length)


def mutate_text(rng: Random, data: bytes) -> bytes:
    """Change lines: hostile ones come in, others go, move, or lose what ends them."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        lines = data.split(b"\n")
        place = rng.randrange(len(lines))
        how = rng.randrange(8)
        if how == 0:
            lines.insert(place, rng.choice(_WORDS).encode())
        elif how == 1:
            lines[place] = rng.choice(_WORDS).encode()
        elif how == 2:
            del lines[place]
        elif how == 3:
            lines.insert(rng.randrange(len(lines)), lines[place])
        elif how == 4:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        elif how == 5:
            lines[place] = mutate_bytes(rng, lines[place])
        elif how == 6:
            rng.shuffle(lines)
        data = (b"\r\n" if how == 7 else b"\n").join(lines)
    return data


def mutate_tree(rng: Random, tree: Any, change: Callable[[Random, Any], Any] | None = None) -> Any:
    """Replace, remove, add or rename something in nested dicts and lists; returns a copy.

    Args:
        rng: Where the randomness comes from.
        tree: The values.
        change: Changes a value, where it is not replaced by one of `VALUES`.
    """
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holder, key = None, None
        value = tree
        # Down to a leaf, or to somewhere on the way.
        while isinstance(value, (dict, list)) and value and (holder is None or rng.random() < 0.9):
            holder = value
            key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
            value = holder[key]
        if holder is None:
            return rng.choice(VALUES)
        how = rng.randrange(8)
        if how == 0:
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[rng.choice((f"{key}x", "", 1, None))] = holder.pop(key)
        elif how == 2:
            other = rng.choice(list(holder)) if isinstance(holder, dict) else 0
            holder[key] = holder[other]
        elif change is not None and how < 6:
            holder[key] = change(rng, value)
        elif type(value) is int and how < 6:
            holder[key] = rng.choice((value + 1, value - 1, -value, value * 1000, value << 40))
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return tree
