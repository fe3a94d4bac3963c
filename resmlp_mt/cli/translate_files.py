"""The lines that `resmlp-mt translate` reads, and the file that it makes."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice

from resmlp_mt.cli.search_flags import list_settings
from resmlp_mt.errors import UserError
from resmlp_mt.text.surrogates import mend_surrogates
from resmlp_mt.translating.lines import (
    STANDARD,
    Arrivals,
    Lines,
    comes,
    open_files,
    take_shard,
)

# Flags that the output does not depend on, or not by their own values.
_NO_MATTER = "text input output resume quiet threads device user_dir run".split()


@dataclass
class Input:
    """Lines to translate.

    Attributes:
        lines: Each of which gives a line.
        find: Where the line of a number stands.
        arrivals: Where they come from, if they are waited for.
        first: Number of the first.
    """

    lines: Iterable[str]
    find: Callable[[int], str]
    arrivals: Arrivals | None = None
    first: int = 1


def open_input(arguments: argparse.Namespace) -> Input:
    """The lines that the flags name.

    Raises:
        UserError: If --shard is none. While the lines are read, if they cannot be.
    """
    if arguments.shard is not None:
        if not arguments.input:
            raise UserError("--shard needs --input: files, which it reads twice")
        lines, start, stop = take_shard(arguments.input, arguments.shard)
        return Input(islice(lines, start, stop), lines.find, first=start + 1)
    if arguments.text:  # where bytes that are no UTF-8 come as halves of surrogate pairs
        texts = (mend_surrogates(text).split("\n") for text in arguments.text)
        lines = Lines([(chain.from_iterable(texts), "")])
        return Input(lines, lines.find)
    paths = arguments.input or [STANDARD]
    if not arguments.input and sys.stdin.isatty() and not arguments.quiet:
        print("type lines to translate; Ctrl-D ends", file=sys.stderr)
    lines = open_files(paths)
    arrivals = Arrivals(lines) if any(map(comes, paths)) else None
    return Input(arrivals or lines, lines.find, arrivals)


def is_done(arguments: argparse.Namespace) -> bool:
    """Whether the --output is there, and no stopped run was making it anew.

    How many lines the input gives is not known before the work of standard input and pipes, and of
    several translations only whether there are any.

    Raises:
        UserError: If it is there, and has other lines than the input gives.
    """
    from resmlp_mt.data.reading import read_lines
    from resmlp_mt.files.partial_text import is_finished

    if not is_finished(arguments.output):
        return False
    files = arguments.input and all(path.is_file() for path in arguments.input)
    if not (arguments.text or files):
        return True
    given = sum(1 for _ in open_input(arguments).lines)
    found = sum(1 for _ in read_lines(arguments.output))
    is_line_for_line = arguments.json or arguments.nbest == 1
    if found != given if is_line_for_line else bool(found) != bool(given):
        raise UserError(
            f"{arguments.output} has {found:,} lines, and the input {given:,}: it is no finished "
            "output of that; write to another file, or leave out --resume to replace it"
        )
    return True


@contextmanager
def open_output(arguments: argparse.Namespace, terms: dict[str, str] | None) -> Iterator:
    """Yield the --output, opened, and say if that made its folder; `terms` are of the --glossary.

    Raises:
        UserError: If it cannot be opened.
    """
    from resmlp_mt.checkpoints.checksum import checksum_model, list_files
    from resmlp_mt.files.output import follow_links, refuse_overwriting
    from resmlp_mt.files.partial_text import open_text

    inputs = [] if arguments.text else arguments.input or [STANDARD]
    read = [0 if path == STANDARD else path for path in inputs]
    read += [path for model in arguments.model for path in list_files(model)]
    refuse_overwriting(arguments.output, read + [arguments.glossary] * bool(arguments.glossary))
    options = list_settings(arguments, terms, _NO_MATTER)
    options["--model of SHA-256"] = [checksum_model(model) for model in arguments.model]
    folder = follow_links(arguments.output).parent
    is_new = not folder.exists()
    with open_text(arguments.output, options, arguments.resume) as out:
        if is_new and not arguments.quiet:  # or a mistyped name would go unnoticed
            print(f"resmlp-mt translate: made the folder {folder}", file=sys.stderr)
        yield out
