"""Code within text, as Markdown marks it: blocks of lines, and parts of a sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 1000  # lines of a block of code

CODE = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^`]+)(?P=ticks)(?!`)"
_CODE = re.compile(CODE)
_QUOTES = "\"'`»«›‹„“”‚‘’"
_QUOTED = re.compile(f"(?<!\\w)[{_QUOTES}]([^{_QUOTES}]+)[{_QUOTES}](?!\\w)")
# What begins a block, behind what begins quotes and items of lists. Tildes alone underline headings
# and part mails, so they need a name behind them.
_FENCE = re.compile(
    r"(?P<before>(?:\s*+(?:>|[-+*](?=\s)|\d{1,9}[.)](?=\s))){0,6}\s*+)"
    r"(?P<marks>`{3,9}+(?!.*`)|~{3,9}+(?=\s*\w)(?!.*~))"
)
_END = re.compile(r"(?P<before>(?:\s*+>){0,6}\s*+)(?P<marks>`{3,}+|~{3,}+)\s*")


@dataclass(frozen=True)
class Fence:
    """What begins a block of code.

    Attributes:
        marks: Three backquotes to nine, or as many tildes.
        depth: Of the quote that it is in.
    """

    marks: str
    depth: int


def find_fence(line: str) -> Fence | None:
    """The beginning of a block of code that a line is.

    As in CommonMark (4.5), but for two things. It may be indented by any blanks, and behind tildes
    must stand a name, as of a language.
    """
    found = _FENCE.match(line)
    return found and Fence(found["marks"], found["before"].count(">"))


def ends_code(line: str, fence: Fence) -> bool:
    """Whether a line ends a block: with as many marks at least, alone, in a quote as deep."""
    found = _END.fullmatch(line)
    return bool(
        found
        and found["marks"].startswith(fence.marks)
        and found["before"].count(">") == fence.depth
    )


def part_code(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Part lines where blocks of code begin and end.

    A block without an end is none, and so is one of more than `LONGEST` lines: else a single line
    would make code of all that follows.

    >>> list(part_code(["Do:", "```sh", "ls", "```", "Done."]))
    [(['Do:'], False), (['```sh', 'ls', '```'], True), (['Done.'], False)]

    Args:
        lines: With their ends or without.

    Yields:
        Lines, and whether they are a block of code.
    """
    start = i = 0
    endless: dict[Fence, int] = {}  # up to which line nothing ends what begins so
    while i < len(lines):
        fence = find_fence(lines[i])
        i += 1
        if fence is None:
            continue
        last = min(len(lines), i + LONGEST - 1)
        among = range(max(i, endless.get(fence, 0)), last)
        end = next((k for k in among if ends_code(lines[k], fence)), None)
        if end is None:
            endless[fence] = last
            continue
        if start < i - 1:
            yield lines[start : i - 1], False
        yield lines[i - 1 : end + 1], True
        start = i = end + 1
    if start < len(lines):
        yield lines[start:], False


def join_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, with its end, or a whole block of code, and whether it is one."""
    for part, is_code in part_code(lines):
        for line in ["".join(part)] if is_code else part:
            yield line, is_code


def restore_code(translation: str, source: str) -> str:
    """Put the code of a source in the place of its quoted translations.

    >>> restore_code("Die Funktion »f()« gibt »Keine« zurück.", "`f()` returns `None`.")
    'Die Funktion `f()` gibt `None` zurück.'

    Args:
        translation: What a model made of the source.
        source: Raw text.

    Returns:
        The translation with as many words. Code that it has as it is gets its backquotes back. Of
        what is left each quoted part is taken for the code that comes next, if there are as many.
    """
    codes = [match for match in _CODE.finditer(source) if match["code"].strip()]
    if not codes:
        return translation
    missing, done = [], []  # where code was put back: nothing else is put there
    for match in codes:
        code = re.escape(match["code"])
        ways = f"[{_QUOTES}]{code}[{_QUOTES}]", code  # what is not quoted may be another word
        same = (m.span() for w in ways for m in re.finditer(f"(?<!\\w){w}(?!\\w)", translation))
        free = (span for span in same if not _meets(span, done))
        if place := next(free, None):
            done.append((*place, match[0]))
        else:
            missing.append(match)
    quoted = [m for m in _QUOTED.finditer(translation) if not _meets(m.span(), done)]
    if len(quoted) == len(missing) and not _QUOTED.search(_CODE.sub("", source)):
        done += [
            (*place.span(), match[0])
            for place, match in zip(quoted, missing, strict=True)
            if len(place[0].split()) == len(match[0].split())
        ]
    for start, end, code in sorted(done, reverse=True):
        translation = translation[:start] + code + translation[end:]
    return translation


def _meets(place: tuple[int, int], done: list[tuple[int, int, str]]) -> bool:
    return any(place[0] < end and start < place[1] for start, end, _ in done)
