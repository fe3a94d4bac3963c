"""Translate raw text. Each line gives a line, in the same order; empty lines stay empty.

Takes sentences as arguments, files with --input, or standard input. A model that was trained on
single sentences gets the sentences of a line one by one. Their translations are joined again.

--output FILE is for long work. The file appears when it is finished, and replaces one of that
name. If the command was stopped half way, repeat it with --resume.

  resmlp-mt translate --model multi30k-en-de "A man rides a bike."
  resmlp-mt translate --model checkpoints/mine < text.en > text.de

docs/translate.md shows every option, for checkpoints and for exported models.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, starmap
from pathlib import Path

from resmlp_mt.cli.flags import (
    add_device,
    add_kind,
    add_user_dir,
    check_positive,
    check_threads,
    import_user_dir,
)
from resmlp_mt.cli.search_flags import add_search, read_search, search_settings, split_columns
from resmlp_mt.cli.translations import format_line
from resmlp_mt.lines.arrivals import Lines, take_arrived
from resmlp_mt.lines.places import Places

_STANDARD = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("text", nargs="*", help="sentences; without any, standard input is read")
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or what 'resmlp-mt export' made; several "
        "translate together",
    )
    add_user_dir(parser)
    parser.add_argument(
        "--input",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="text files, also .gz and .xz; - is standard input",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="translate the I-th of N equal parts of the --input; one after the other their "
        "outputs are that of the whole",
    )
    parser.add_argument(
        "--field",
        "--tsv-column",
        metavar="N|NAME",
        help="translate column N of lines with tabs, counted from 1, or the field NAME of lines of "
        "JSON (m.text: text of the object m), and keep the others",
    )
    parser.add_argument(
        "--into",
        metavar="N|NAME",
        help="put translations into this column or field, and keep the --field too",
    )
    parser.add_argument(
        "--score-into",
        metavar="N|NAME",
        help="put the score of each translation into this column or field",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write there instead of to standard output (-); compressed if it ends in .gz or .xz",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with an --output that was stopped half way"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help='print a line {"source", "unknown", "translations": [{"text", "score"}]} for each '
        "line; unknown is the share of characters that the model never saw",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no bar, hint or warning on standard error"
    )
    add_kind(
        parser,
        "--print-alignment",
        ("word", "subword"),
        help="print after each translation, behind a tab, which words belong together: pairs "
        "SOURCE-TARGET, counted from 0; or which subwords, as fairseq prints them",
    )
    parser.add_argument(
        "--split-sentences",
        action=argparse.BooleanOptionalAction,
        help="translate each sentence of a line by itself, or lines as a whole unless they are too "
        "long (default: as the model was trained)",
    )
    parser.add_argument(
        "--recase",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="read text in capitals in lower case and answer in capitals, read emphasis, links and "
        "tags within a sentence as plain words, and keep words that the model cannot read "
        "(default), or translate all as it is typed",
    )
    parser.add_argument(
        "--join-lines",
        action="store_true",
        help="put each line that does not end its sentence together with the next, as in mails and "
        "other wrapped text; each line that results gives a line",
    )
    parser.add_argument(
        "--batch-tokens",
        type=int,
        default=4096,
        metavar="N",
        help="source subwords in a batch (default: %(default)s)",
    )
    parser.add_argument(
        "--buffer-size",
        type=int,
        default=1000,
        metavar="N",
        help="most lines translated together; lines from a pipe or a terminal are answered as they "
        "come (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads on a CPU (default: one a core)",
    )
    add_device(parser)
    add_search(parser)


def run(arguments: argparse.Namespace) -> None:
    """Translate and print."""
    from resmlp_mt.errors import UserError
    from resmlp_mt.files.finding import pretrained_names
    from resmlp_mt.files.partial_text import is_finished
    from resmlp_mt.inference.glossary import Glossary, read_glossary
    from resmlp_mt.inference.loading import import_engines
    from resmlp_mt.inference.translator import Translator

    if not arguments.model:
        shipped = ", ".join(pretrained_names("text"))
        raise UserError(f"--model is missing; name a folder, a checkpoint, or one of {shipped}")
    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    search, field = read_search(arguments), _choose_field(arguments)
    _check_joining(arguments)
    check_positive(arguments, "batch_tokens", "buffer_size")
    check_threads(arguments)
    if arguments.output == _STANDARD:
        arguments.output = None
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output and the name of a file")
    if arguments.resume and is_finished(arguments.output):
        _check_finished(arguments)
        return print(
            f"resmlp-mt translate: {arguments.output} is finished; to make it anew, leave out "
            "--resume",
            file=sys.stderr,
        )
    terms = arguments.glossary and read_glossary(arguments.glossary)
    import_engines(arguments.model)
    import_user_dir(arguments)
    # Opened first: what cannot be written fails before the work.
    with _open_output(arguments, terms) if arguments.output else nullcontext() as out:
        load = Translator.from_pretrained
        translator = load(arguments.model, arguments.device, arguments.threads)
        glossary = terms and Glossary(terms, translator.codec)
        places = Places()
        lines, ready, before = _open_input(arguments, translator.codec.source_language, places)
        if out is None:
            sys.stdout.reconfigure(encoding="utf-8")
            out = sys.stdout
        else:
            lines = out.follow(lines)
            before += out.lines
        groups = take_arrived(lines, arguments.buffer_size, ready)
        translate = partial(
            translator.translate_nbest,
            options=search,
            glossary=glossary,
            attention=bool(arguments.print_alignment),
            split_sentences=arguments.split_sentences,
            recase=arguments.recase,
            batch_tokens=arguments.batch_tokens,
        )
        find = "line {}".format if arguments.join_lines else places.find
        take = field and (lambda number, line: field.take(line, find(number)))
        _write(arguments, translate, take, find, groups, before + 1, out)


def _choose_field(arguments: argparse.Namespace):
    """What --field, --into and --score-into say; None where lines are texts."""
    from resmlp_mt.errors import UserError
    from resmlp_mt.lines.fields import choose_field

    if arguments.field is None:
        for name in ("into", "score_into"):
            if getattr(arguments, name) is not None:
                raise UserError(f"--{name.replace('_', '-')} needs --field")
        return None
    others = ("json", "print_alignment", "prefix_column", "constraints")
    if arguments.nbest > 1 or any(getattr(arguments, name) for name in others):
        raise UserError(
            "--field (or --tsv-column) prints the line with its translation: leave out --nbest, "
            "--json (--score-into gives the scores), --print-alignment, --prefix-column and "
            "--constraints"
        )
    return choose_field(arguments.field, arguments.into, arguments.score_into)


def _check_joining(arguments: argparse.Namespace) -> None:
    """Refuse --join-lines with what goes by the lines of the input."""
    from resmlp_mt.errors import UserError

    names = ("shard", "field", "prefix_column", "constraints")
    for name in names if arguments.join_lines else ():
        if getattr(arguments, name) is not None:
            flag = "--field (or --tsv-column)" if name == "field" else f"--{name.replace('_', '-')}"
            raise UserError(
                f"{flag} goes by the lines of the input, which --join-lines puts together: give "
                "one of the two"
            )


def _check_finished(arguments: argparse.Namespace) -> None:
    """Refuse to take an --output for finished that has other lines than the input gives.

    How many it gives is not known before the work of standard input and pipes, and of several
    translations or joined lines only whether there are any.
    """
    from resmlp_mt.data.reading import read_lines
    from resmlp_mt.errors import UserError

    files = arguments.input and all(path.is_file() for path in arguments.input)
    if not (arguments.text or files):
        return
    # The language says which lines are joined, not whether there are any.
    lines, _, _ = _open_input(arguments, "en", Places())
    given = sum(1 for _ in lines)
    found = sum(1 for _ in read_lines(arguments.output))
    is_line_for_line = not arguments.join_lines and (arguments.json or arguments.nbest == 1)
    if found != given if is_line_for_line else bool(found) != bool(given):
        raise UserError(
            f"{arguments.output} has {found:,} lines, and the input {given:,}: it is no finished "
            "output of that; write to another file, or leave out --resume to replace it"
        )


@contextmanager
def _open_output(arguments: argparse.Namespace, terms: dict[str, str] | None) -> Iterator:
    """Yield what --output names, opened; says so if that made its folder.

    Raises:
        UserError: If it cannot be opened.
    """
    from resmlp_mt.checkpoints.checksum import checksum_model, list_files
    from resmlp_mt.files.output import follow_links, refuse_overwriting
    from resmlp_mt.files.partial_text import open_text

    inputs = [] if arguments.text else arguments.input or [_STANDARD]
    read = [0 if path == _STANDARD else path for path in inputs]
    read += [path for model in arguments.model for path in list_files(model)]
    refuse_overwriting(arguments.output, read + [arguments.glossary] * bool(arguments.glossary))
    names = ("json", "print_alignment", "field", "into", "score_into", "shard")
    names += ("split_sentences", "batch_tokens", "buffer_size")
    options = {"--model": arguments.model}  # first, as what a refusal begins with
    options["--model of SHA-256"] = [checksum_model(model) for model in arguments.model]
    options |= {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}
    options["--join-lines"] = arguments.join_lines or None  # which a part of before lacks
    options |= search_settings(arguments, terms)
    options["--recase"] = arguments.recase or None  # a part of before took capitals as typed
    folder = follow_links(arguments.output).parent
    is_new = not folder.exists()
    with open_text(arguments.output, options, arguments.resume) as out:
        if is_new and not arguments.quiet:  # or a mistyped name would go unnoticed
            print(f"resmlp-mt translate: made the folder {folder}", file=sys.stderr)
        yield out


def _write(
    arguments: argparse.Namespace,
    translate: Callable[..., Iterator[list]],
    take: Callable | None,
    find: Callable[[int], str],
    groups: Iterable[list[str]],
    first: int,
    out,
) -> None:
    """Write the translations of lines, a group after the other, as they come.

    Args:
        arguments: Of the command.
        translate: `translate_nbest` of a `Translator`, with the options of the command.
        take: Finds the text of a line, and what puts another one there, by number and line. None
            where all of a line is text.
        find: Where the line of a number stands.
        groups: Lines that are translated together.
        first: Number of the first line.
        out: Where to.
    """
    from resmlp_mt.extras import Bar
    from resmlp_mt.inference.hypotheses import MOSTLY, explain_unknown

    quiet = arguments.quiet or not sys.stderr.isatty() or (out is sys.stdout and out.isatty())
    number, warned = first, arguments.quiet
    with Bar(unit=" lines", disable=quiet) as bar:
        for lines in groups:
            puts = []
            if take is not None:
                taken = starmap(take, enumerate(lines, number))
                lines, puts = map(list, zip(*taken, strict=True))
            sources, guides = split_columns(lines, arguments)
            found = translate(sources, **guides, first=number, buffer_size=len(sources))
            for i, hypotheses in enumerate(_naming_places(found, find)):
                if hypotheses[0].unknown > MOSTLY and not warned:
                    warned = True
                    said = f"{find(number)}: {explain_unknown(sources[i])}"
                    bar.write(f"resmlp-mt translate: {said}", file=sys.stderr)
                if puts:
                    best = hypotheses[0]
                    out.write(puts[i](best.text, best.score) + "\n")
                else:
                    out.write(format_line(arguments, number, sources[i], hypotheses))
                number += 1
                bar.update()
            out.flush()


def _naming_places(found: Iterator[list], find: Callable[[int], str]) -> Iterator[list]:
    """Yield what is found; an error about a line says where that stands."""
    from resmlp_mt.errors import LineError

    try:
        yield from found
    except LineError as error:
        raise error.at(find) from None


def _open_input(
    arguments: argparse.Namespace, language: str, places: Places
) -> tuple[Iterator[str], Callable[[float], bool], int]:
    """The lines, whether the next comes within so many seconds, and how many come before them."""
    from resmlp_mt.errors import UserError
    from resmlp_mt.lines.joined import JoinedLines
    from resmlp_mt.lines.shards import take_shard
    from resmlp_mt.text.surrogates import mend_surrogates

    if arguments.shard is not None:
        if not arguments.input:
            raise UserError("--shard needs --input: files, which it reads twice")
        lines, before = take_shard(arguments.input, arguments.shard, places)
        return lines, _at_once, before
    texts: Iterable[Iterable[str]]
    if arguments.text:  # where bytes that are no UTF-8 come as halves of surrogate pairs
        texts, ready = (mend_surrogates(text).split("\n") for text in arguments.text), _at_once
    else:
        if not arguments.input and sys.stdin.isatty() and not arguments.quiet:
            print("type lines to translate; Ctrl-D ends", file=sys.stderr)
        files = Lines(arguments.input or [_STANDARD], places)
        texts, ready = files.texts(), files.ready
    if arguments.join_lines:
        joined = JoinedLines(texts, language, ready)
        return joined, joined.ready, 0
    return chain.from_iterable(texts), ready, 0


def _at_once(seconds: float) -> bool:
    return True
