"""A share of the lines of files, for one of several commands that translate them together."""

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.translating.arrivals import comes
from resmlp_mt.translating.places import Places


def take_shard(paths: list[Path], shard: str, places: Places) -> tuple[Iterator[str], int]:
    """Read the lines of one shard: those in a row that are the I-th of N parts.

    All shards one after the other are the lines of the files. Their sizes differ by one at most.

    Args:
        paths: Text files, also packed ones. They are read twice: once to count the lines.
        shard: "I/N", I from 1 to N.
        places: Learns where the lines stand.

    Returns:
        The lines, and how many come before them.

    Raises:
        UserError: If the shard is none, or a file cannot be read twice.
    """
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise UserError(f"--shard {shard}: give I/N, with I from 1 to N")
    for path in paths:
        if comes(path):
            raise UserError(f"--shard reads its --input twice, which {path} does not allow")
    total = sum(1 for path in paths for _ in read_lines(path))
    start, stop = total * (number - 1) // count, total * number // count
    lines = chain.from_iterable(places.follow(read_lines(path), str(path)) for path in paths)
    return islice(lines, start, stop), start
