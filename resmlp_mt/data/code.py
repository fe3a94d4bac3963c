"""Code between backquotes, which models translate as if it were quoted."""

import re

CODE = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^`]+)(?P=ticks)(?!`)"
_CODE = re.compile(CODE)
_QUOTES = "\"'`»«›‹„“”‚‘’"
_QUOTED = re.compile(f"(?<!\\w)[{_QUOTES}]([^{_QUOTES}]+)[{_QUOTES}](?!\\w)")


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
