"""A mistake that a user can put right: the command line prints it and exits with status 2."""

_NAMED = 5  # lines in a message
_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029)
_SPELT_OUT = {code: repr(chr(code))[1:-1] for code in _CONTROLS}


class UserError(ValueError):
    """A mistake in input, files or flags; the message says what, where and what to do.

    Nothing else is shown without its traceback. Programs that catch `ValueError` catch it too.
    """


class BrokenModel(UserError):
    """A model that cannot be computed with, or finds nothing: its weights may be no numbers."""


class LineError(UserError):
    """A mistake in a line of many. Whoever read them knows where it stands.

    Args:
        numbers: Of lines, of which one has it; counted over all that were read.
        problem: The mistake in words, without the lines.
        places: The places of the first of these lines, if they are known.
    """

    def __init__(self, numbers: list[int], problem: str, places: list[str] | None = None):
        named = list(dict.fromkeys(places or map("line {}".format, numbers[:_NAMED])))
        more = ["another"] * (len(numbers) > _NAMED)
        super().__init__(f"{' or '.join(named + more)}: {problem}")
        self.numbers, self.problem, self.places = numbers, problem, places

    def __reduce__(self):
        return LineError, (self.numbers, self.problem, self.places)

    def at(self, find) -> "LineError":
        """The same, with the places of the lines: find(number) is one."""
        return LineError(self.numbers, self.problem, list(map(find, self.numbers[:_NAMED])))


def on_a_line(text: str) -> str:
    """Text with its control characters spelt out, so that it takes a line and no more."""
    return text.translate(_SPELT_OUT)


def name_some(names: list[str], limit: int = 5) -> str:
    """The first names, and how many more there are, on a line: they may be of a stranger's file."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return on_a_line(", ".join(names[:limit])) + more


def name_flag(name: str) -> str:
    """The name of a flag on the command line: "--max-tokens" of max_tokens."""
    return f"--{name.replace('_', '-')}"
