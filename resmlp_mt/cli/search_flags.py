"""The flags of a search, and the columns of lines that lead it."""

import argparse
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from resmlp_mt.errors import UserError, name_flag


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each field of `SearchOptions`, and those for what leads a line."""
    add = parser.add_argument_group("search").add_argument
    add("--beam", type=int, metavar="N", help="width (default: 5)")
    add("--nbest", type=int, default=1, metavar="N", help="print so many: number, score, text")
    add("--lenpen", type=float, default=1.0, metavar="X", help="above 1 favours longer ones")
    add("--max-len-a", type=float, default=0.0, metavar="A", help="of x subwords A x + B at most")
    add("--max-len-b", type=int, default=200, metavar="B", help="see --max-len-a")
    add("--no-repeat-ngram-size", type=int, default=0, metavar="N", help="no N subwords twice")
    said = "look only at the subwords of the export's shortlist, where it has one"
    add("--shortlist", action=argparse.BooleanOptionalAction, default=True, help=said)
    add = parser.add_argument_group("sampling").add_argument
    add("--sampling", action="store_true", help="draw --nbest translations of a line at random")
    add("--sampling-topk", type=int, metavar="N", help="draw from the N likeliest subwords only")
    add("--sampling-topp", type=float, metavar="P", help="from the fewest with probability P")
    add("--temperature", type=float, default=1.0, metavar="T", help="below 1 prefers likely ones")
    add("--seed", type=int, default=1, metavar="N", help="draws the same from the same lines")
    add = parser.add_argument_group("what translations hold").add_argument
    add("--prefix", default="", metavar="TEXT", help="text that every translation begins with")
    said = "column N of each line, behind N - 1 tabs, is what its translation begins with"
    add("--prefix-column", type=int, metavar="N", help=said)
    kinds = dict(nargs="?", const="ordered", choices=("ordered", "unordered"))
    add("--constraints", **kinds, help="translations must hold the words behind a line's tabs")
    said = "lines with a term of the source, a tab, and what translations must hold for it"
    add("--glossary", type=Path, metavar="FILE", help=said)


def list_settings(
    arguments: argparse.Namespace, terms: dict[str, str] | None, without: Iterable[str]
) -> dict:
    """All flags with their values but those `without` a part in what is made.

    The terms that were read from --glossary stand for that, as a sum.
    """
    left_out = {"glossary", *without}
    given = {name_flag(n): value for n, value in vars(arguments).items() if n not in left_out}
    said = json.dumps(terms).encode()
    return given | {"--glossary of SHA-256": hashlib.sha256(said).hexdigest()}


def read_search(arguments: argparse.Namespace):
    """The `SearchOptions` of the flags.

    Raises:
        UserError: If one is impossible, or two do not go together.
    """
    from resmlp_mt.engines.options import SearchOptions

    ways = ("prefix", "prefix_column", "constraints", "glossary")
    if sum(bool(getattr(arguments, name)) for name in ways) > 1:
        raise UserError("give one of --prefix, --prefix-column, --constraints and --glossary")
    if arguments.prefix_column is not None and arguments.prefix_column < 2:
        raise UserError("--prefix-column must be 2 or more: the first column is the text")
    if re.search(r"[\n\r\t]", arguments.prefix) and not arguments.json:
        raise UserError("--prefix holds a line end or a tab, which lines do not: give it without")
    given = {field.name: getattr(arguments, field.name) for field in fields(SearchOptions)}
    if arguments.glossary:
        given["constraints"] = "unordered"
    try:
        return SearchOptions(**given)
    except ValueError as error:
        # Rules speak of options by their names in Python.
        named = rf"^\w+|\b({'|'.join(given)})\b"
        said = re.sub(named, lambda found: name_flag(found[0]), str(error))
        if arguments.glossary:
            said = said.replace("--constraints 'unordered'", "--glossary")
        raise UserError(said) from None


def split_columns(lines: list[str], arguments: argparse.Namespace) -> tuple[list[str], dict]:
    """The texts of lines, and what `translate_nbest` takes beside them, by the flags."""
    if not (arguments.constraints or arguments.prefix_column):
        return lines, {"prefix": arguments.prefix}
    rows = [line.split("\t") for line in lines]
    texts = [row[0] for row in rows]
    if arguments.constraints:
        return texts, {"words": [row[1:] for row in rows]}
    column = arguments.prefix_column - 1
    return texts, {"prefix": [row[column] if len(row) > column else "" for row in rows]}
