"""Code within text, as Markdown marks it: blocks of lines, and parts of a sentence."""

import re
from collections.abc import Iterator

CODE = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^`]+)(?P=ticks)(?!`)"
_CODE = re.compile(CODE)
# What begins a block of code: three backquotes or more, or tildes. A language may be named behind.
_FENCE = re.compile(r"[\s>]*+(`{3,}+(?!.*`)|~{3,})")
_AROUND = " \t\r\n>\u2028\u2029"
_QUOTES = "\"'`»«›‹„“”‚‘’"
_QUOTED = re.compile(f"(?<!\\w)[{_QUOTES}]([^{_QUOTES}]+)[{_QUOTES}](?!\\w)")


def find_fence(line: str) -> str | None:
    """The marks with which a line begins a block of code (CommonMark, 4.5); None without any."""
    fence = _FENCE.match(line)
    return fence and fence[1]


def ends_code(line: str, fence: str) -> bool:
    """Whether a line ends the block that began with these marks: with as many at least, alone."""
    marks = line.strip(_AROUND)
    return len(marks) >= len(fence) and not marks.strip(fence[0])


def part_code(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Part lines where blocks of code begin and end.

    A block without an end is none: else a single line would make code of all that follows.

    >>> list(part_code(["Do:", "```sh", "ls", "```", "Done."]))
    [(['Do:'], False), (['```sh', 'ls', '```'], True), (['Done.'], False)]

    Args:
        lines: With their ends or without.

    Yields:
        Lines, and whether they are a block of code.
    """
    start = i = 0
    endless: set[str] = set()  # marks that nothing ends from here on
    while i < len(lines):
        fence = find_fence(lines[i])
        i += 1
        if fence is None or fence in endless:
            continue
        end = next((k for k in range(i, len(lines)) if ends_code(lines[k], fence)), None)
        if end is None:
            endless.add(fence)
            continue
        if start < i - 1:
            yield lines[start : i - 1], False
        yield lines[i - 1 : end + 1], True
        start = i = end + 1
    if start < len(lines):
        yield lines[start:], False


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
