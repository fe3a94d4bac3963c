"""Blocks of code within text, as Markdown marks them."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

_LONGEST, _MOST = 1000, 9  # lines of a block, and marks that begin it
# The start of a block, behind marks of quotes and items of lists. Tildes alone underline headings
# and part mails, so they need a name behind them.
_FENCE = re.compile(
    r"(?P<before>(?:\s*+(?:>|[-+*](?=\s)|\d{1,9}[.)](?=\s))){0,6}\s*+)"
    r"(?P<marks>`{3,9}+(?!.*`)|~{3,9}+(?=\s*\w)(?!.*~))"
)
_END = re.compile(r"(?P<before>(?:\s*+>){0,6}\s*+)(?P<marks>`{3,}+|~{3,}+)\s*")


def join_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, or a whole block of code as of CommonMark (4.5), and whether it is a block.

    A block without an end does not count, and neither does one of more than a thousand lines: else
    a single line would make code of all that follows.
    """
    ends = defaultdict(list)  # the lines that may end a block, by its marks and depth of quotes
    for i, found in enumerate(map(_END.fullmatch, lines)):
        for size in range(3, min(len(found["marks"]), _MOST) + 1) if found else ():
            ends[found["marks"][:size], found["before"].count(">")].append(i)
    i = 0
    while i < len(lines):
        last = i
        if found := _FENCE.match(lines[i]):
            its = ends[found["marks"], found["before"].count(">")]
            behind = bisect_right(its, i)
            if behind < len(its) and its[behind] < i + _LONGEST:
                last = its[behind]
        yield "".join(lines[i : last + 1]), last > i
        i = last + 1
