"""Translate raw text. Each line gives a line, in the same order; empty lines stay empty.

Takes sentences as arguments, files with --input, or standard input. A model that was trained on
single sentences gets the sentences of a line one by one. Their translations are joined again.

--output FILE is for long work. The file appears when it is finished, and replaces one of that
name. If the command was stopped half way, repeat it with --resume.

  resmlp-mt translate --model multi30k-en-de "A man rides a bike."
  resmlp-mt translate --model checkpoints/mine < text.en > text.de

docs/translate.md shows every option, and which of the two engines has it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from resmlp_mt.cli.flags import add_device, check_positive
from resmlp_mt.cli.search_flags import Columns, add_search, read_search, search_settings

_STDIN = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("text", nargs="*", help="sentences; without any, standard input is read")
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or what 'resmlp-mt export' made; several "
        "translate together",
    )
    parser.add_argument(
        "--input",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="text files, also .gz and .xz; - is standard input",
    )
    parser.add_argument(
        "--tsv-column",
        type=int,
        metavar="N",
        help="translate column N of lines with tabs, counted from 1, and keep the other columns",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write there instead of to standard output; compressed if it ends in .gz or .xz",
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
    parser.add_argument(
        "--print-alignment",
        nargs="?",
        const="word",
        choices=("word", "subword"),
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
    from resmlp_mt.files.partial_text import is_finished
    from resmlp_mt.inference.translator import Translator, import_engines

    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    search = read_search(arguments)
    check_positive(arguments, "batch_tokens", "buffer_size")
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    if arguments.tsv_column is not None:
        check_positive(arguments, "tsv_column")
        others = ("json", "print_alignment", "prefix_column", "constraints")
        if arguments.nbest > 1 or any(getattr(arguments, name) for name in others):
            raise UserError(
                "--tsv-column prints the line with one column translated: leave out --nbest, "
                "--json, --print-alignment, --prefix-column and --constraints"
            )
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output")
    if arguments.resume and is_finished(arguments.output):
        return print(
            f"resmlp-mt translate: {arguments.output} is finished; to make it anew, leave out "
            "--resume",
            file=sys.stderr,
        )
    import_engines(arguments.model)
    # Opened first: what cannot be written fails before the work.
    with _open_output(arguments) if arguments.output else nullcontext() as out:
        load = Translator.from_pretrained
        translator = load(arguments.model, arguments.device, arguments.threads)
        lines, ready = _open_input(arguments)
        if out is None:
            sys.stdout.reconfigure(encoding="utf-8")
            return _translate(arguments, translator, search, lines, ready, sys.stdout)
        lines = out.follow(lines)
        _translate(arguments, translator, search, lines, ready, out, first=out.lines + 1)


def _open_output(arguments: argparse.Namespace):
    """What --output names, opened; raises a `UserError` if it cannot be."""
    from resmlp_mt.checkpoints.checksum import checksum_model
    from resmlp_mt.files.output import refuse_overwriting
    from resmlp_mt.files.partial_text import open_text

    inputs = [] if arguments.text else arguments.input or [_STDIN]
    refuse_overwriting(arguments.output, [0 if path == _STDIN else path for path in inputs])
    names = ("json", "print_alignment", "tsv_column", "split_sentences")
    names += ("batch_tokens", "buffer_size")
    options = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}
    options |= {"--model": arguments.model, **search_settings(arguments)}
    options["--model of SHA-256"] = [checksum_model(model) for model in arguments.model]
    return open_text(arguments.output, options, arguments.resume)


def _translate(
    arguments, translator, search, lines: Iterator[str], ready, out, first: int = 1
) -> None:
    """Write the translations of the lines, which are counted from the first, as the lines come."""
    from resmlp_mt.data.arrivals import take_arrived
    from resmlp_mt.extras import Bar
    from resmlp_mt.inference.hypotheses import MOSTLY, explain_unknown

    quiet = arguments.quiet or not sys.stderr.isatty() or (out is sys.stdout and out.isatty())
    number, warned = first, arguments.quiet
    with Bar(unit=" lines", disable=quiet) as bar:
        for group in take_arrived(lines, arguments.buffer_size, ready):
            sources: list[str] = []  # to print beside their translations
            columns = Columns(_take_column(arguments, group, number), arguments)
            found = translator.translate_nbest(
                _remember(columns.texts(), sources),
                search,
                **columns.guides,
                first=number,
                attention=bool(arguments.print_alignment),
                split_sentences=arguments.split_sentences,
                batch_tokens=arguments.batch_tokens,
                buffer_size=len(group),
            )
            for i, (line, hypotheses) in enumerate(zip(group, found, strict=True)):
                if hypotheses[0].unknown > MOSTLY and not warned:
                    warned = True
                    message = f"resmlp-mt translate: line {number}: {explain_unknown(sources[i])}"
                    bar.write(message, file=sys.stderr)
                if arguments.tsv_column is None:
                    out.write(_format(arguments, number, sources[i], hypotheses))
                else:
                    out.write(_put_column(arguments, line, hypotheses[0].text))
                number += 1
                bar.update()
            out.flush()


def _take_column(arguments: argparse.Namespace, lines: list[str], first: int) -> Iterator[str]:
    """Yield what --tsv-column says of each line; the whole where it says nothing."""
    from resmlp_mt.errors import UserError

    for number, line in enumerate(lines, first):
        if arguments.tsv_column is not None:
            columns = line.split("\t")
            if len(columns) < arguments.tsv_column:
                raise UserError(
                    f"line {number} has {len(columns)} columns: there is no --tsv-column "
                    f"{arguments.tsv_column}"
                )
            line = columns[arguments.tsv_column - 1]
        yield line


def _put_column(arguments: argparse.Namespace, line: str, text: str) -> str:
    columns = line.split("\t")
    columns[arguments.tsv_column - 1] = text
    return "\t".join(columns) + "\n"


def _format(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    if arguments.json:
        translations = [
            {"text": h.text, "score": round(h.score, 4)} | _describe_alignment(arguments, h)
            for h in hypotheses
        ]
        unknown = round(hypotheses[0].unknown, 4)
        entry = {"source": source, "unknown": unknown, "translations": translations}
        return json.dumps(entry, ensure_ascii=False) + "\n"
    texts = [h.text + _print_alignment(arguments, h) for h in hypotheses]
    if arguments.nbest > 1:
        rows = zip(hypotheses, texts, strict=True)
        return "".join(f"{number}\t{h.score:.4f}\t{text}\n" for h, text in rows)
    return texts[0] + "\n"


def _align(arguments: argparse.Namespace, hypothesis) -> list[tuple[int, int]]:
    from resmlp_mt.inference.alignment import align_subwords, align_words

    align = align_words if arguments.print_alignment == "word" else align_subwords
    return align(hypothesis.attention)


def _print_alignment(arguments: argparse.Namespace, hypothesis) -> str:
    if not arguments.print_alignment:
        return ""
    return "\t" + " ".join(f"{s}-{t}" for s, t in _align(arguments, hypothesis))


def _describe_alignment(arguments: argparse.Namespace, hypothesis) -> dict:
    """What JSON says of it: the pairs, and the subwords if they are meant."""
    if not arguments.print_alignment:
        return {}
    pairs = {"alignment": _align(arguments, hypothesis)}
    if arguments.print_alignment == "word":
        return pairs
    sides = ("source", "target")
    return pairs | {
        f"{side}_subwords": [w for a in hypothesis.attention for w in getattr(a, side)[:-1]]
        for side in sides
    }


def _open_input(
    arguments: argparse.Namespace,
) -> tuple[Iterator[str], Callable[[float], bool]]:
    """The lines, and whether the next comes within so many seconds."""
    from resmlp_mt.data.arrivals import Lines
    from resmlp_mt.data.text import mend_surrogates

    if arguments.text:  # where bytes that are no UTF-8 come as halves of surrogate pairs
        texts = map(mend_surrogates, arguments.text)
        return (line for text in texts for line in text.split("\n")), lambda seconds: True
    if not arguments.input and sys.stdin.isatty() and not arguments.quiet:
        print("type lines to translate; Ctrl-D ends", file=sys.stderr)
    lines = Lines(arguments.input or [_STDIN])
    return iter(lines), lines.ready


def _remember(lines: Iterator[str], memory: list[str]) -> Iterator[str]:
    for line in lines:
        memory.append(line)
        yield line
