"""Blocks of code within text, as Markdown marks them."""

import re
from collections.abc import Iterator

_LONGEST = 1000  # lines
# What begins a block, behind what begins quotes and items of lists. Tildes alone underline headings
# and part mails, so they need a name behind them.
_FENCE = re.compile(
    r"(?P<before>(?:\s*+(?:>|[-+*](?=\s)|\d{1,9}[.)](?=\s))){0,6}\s*+)"
    r"(?P<marks>`{3,9}+(?!.*`)|~{3,9}+(?=\s*\w)(?!.*~))"
)
_END = re.compile(r"(?P<before>(?:\s*+>){0,6}\s*+)(?P<marks>`{3,}+|~{3,}+)\s*")
# Three backquotes to nine, or as many tildes, and how deep the quote is that they are in.
Fence = tuple[str, int]


def join_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    r"""Yield each line, or a whole block of code as of CommonMark (4.5), and whether it is one.

    A block without an end is none, and so is one of more than a thousand lines: else a single line
    would make code of all that follows.

    >>> list(join_code(["Do:\n", "```sh\n", "ls\n", "```\n", "Done."]))
    [('Do:\n', False), ('```sh\nls\n```\n', True), ('Done.', False)]
    """
    i = 0
    endless: dict[Fence, int] = {}  # up to which line nothing ends what begins so
    while i < len(lines):
        begin, end = i, None
        i += 1
        if found := _FENCE.match(lines[begin]):
            fence = found["marks"], found["before"].count(">")
            last = min(len(lines), i + _LONGEST - 1)
            among = range(max(i, endless.get(fence, 0)), last)
            end = next((k for k in among if _ends(lines[k], *fence)), None)
            if end is None:
                endless[fence] = last
        if end is not None:
            i = end + 1
        yield "".join(lines[begin:i]), end is not None


def _ends(line: str, marks: str, depth: int) -> bool:
    """Whether a line ends a block: with as many marks at least, alone, in a quote as deep."""
    found = _END.fullmatch(line)
    return bool(found and found["marks"].startswith(marks) and found["before"].count(">") == depth)
