"""What a user can put right: the command line prints it alone and exits with status 2."""

_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029)
_SPELT_OUT = {code: repr(chr(code))[1:-1] for code in _CONTROLS}


class UserError(ValueError):
    """A mistake in input, files or flags; the message says what, where and what to do.

    Nothing else is shown without its traceback. Programs that catch `ValueError` catch it too.
    """


def on_a_line(text: str) -> str:
    """Text with its control characters spelt out, so that it takes a line and no more."""
    return text.translate(_SPELT_OUT)


def name_some(names: list[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
