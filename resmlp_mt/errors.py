"""What a user can put right: the command line prints it alone and exits with status 2."""

from collections.abc import Callable, Sequence

_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029)
_SPELT_OUT = {code: repr(chr(code))[1:-1] for code in _CONTROLS}


class UserError(ValueError):
    """A mistake in input, files or flags; the message says what, where and what to do.

    Nothing else is shown without its traceback. Programs that catch `ValueError` catch it too.
    """


class LineError(UserError):
    """A mistake in a line of many. Whoever read them knows where it stands.

    Args:
        numbers: Of the lines, counted over all. The mistake is in one of them.
        problem: The message without these.
        find: Where the line of a number stands.
    """

    def __init__(
        self, numbers: Sequence[int], problem: str, find: Callable[[int], str] = "line {}".format
    ):
        named = " or ".join([*map(find, numbers[:5]), *["another"] * (len(numbers) > 5)])
        super().__init__(f"{named}: {problem}")
        self.numbers, self.problem = numbers, problem

    def __reduce__(self):
        return LineError, (self.numbers, self.problem)

    def at(self, find: Callable[[int], str]) -> "LineError":
        """The same, with the places of the lines."""
        return LineError(self.numbers, self.problem, find)


def on_a_line(text: str) -> str:
    """Text with its control characters spelt out, so that it takes a line and no more."""
    return text.translate(_SPELT_OUT)


def name_some(names: list[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
