"""Raw text in, raw text out: one line a line, in order, empty lines kept.

Takes sentences as arguments, files with --input, or standard input. Lines that are too long for
the model are split at sentence ends and joined again.

Long work goes to --output FILE, which appears when it is finished, in the place of what had that
name; stopped half way, the same command with --resume goes on.

  resmlp-mt translate --model multi30k-en-de "A man rides a bike."
  resmlp-mt translate --model checkpoints/mine < text.en > text.de

docs/translate.md shows every option, and which of the two engines has it.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from resmlp_mt.cli.flags import add_device, check_positive
from resmlp_mt.cli.search_flags import Columns, add_search, read_search, search_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("text", nargs="*", help="sentences; without any, standard input is read")
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or what 'resmlp-mt export' made; given several "
        "times, these models translate together",
    )
    parser.add_argument(
        "--input", type=Path, nargs="+", default=[], metavar="FILE", help="text files, .gz, .xz too"
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
        help='print a line {"source", "translations": [{"text", "score"}]} for each line',
    )
    parser.add_argument(
        "--print-alignment",
        nargs="?",
        const="word",
        choices=("word", "subword"),
        help="after each translation a tab and the pairs SOURCE-TARGET of words that belong "
        "together, counted from 0; or of subwords, as fairseq prints them",
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
        help="lines read at a time; 1 answers every line at once (default: %(default)s)",
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
    from resmlp_mt.data.partial_text import is_finished
    from resmlp_mt.errors import UserError
    from resmlp_mt.inference.translator import Translator

    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    search = read_search(arguments)
    check_positive(arguments, "batch_tokens", "buffer_size")
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output")
    if arguments.resume and is_finished(arguments.output):
        return print(
            f"resmlp-mt translate: {arguments.output} is finished; to make it anew, leave out "
            "--resume",
            file=sys.stderr,
        )
    # Opened first: what cannot be written fails before the work.
    with _open_output(arguments) if arguments.output else nullcontext() as out:
        load = Translator.from_pretrained
        translator = load(arguments.model, arguments.device, arguments.threads)
        lines = _lines(arguments)
        if out is None:
            sys.stdout.reconfigure(encoding="utf-8")
            return _translate(arguments, translator, search, lines, sys.stdout)
        _translate(arguments, translator, search, out.follow(lines), out, first=out.lines + 1)


def _open_output(arguments: argparse.Namespace):
    """What --output names, opened; raises a `UserError` if it cannot be."""
    from resmlp_mt.data.output import refuse_overwriting
    from resmlp_mt.data.partial_text import open_text
    from resmlp_mt.inference.checksum import checksum_model

    reads_stdin = not arguments.text and not arguments.input
    refuse_overwriting(arguments.output, [0] if reads_stdin else arguments.input)
    names = ("json", "print_alignment", "batch_tokens", "buffer_size")
    options = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}
    options |= {"--model": arguments.model, **search_settings(arguments)}
    options["--model of SHA-256"] = [checksum_model(model) for model in arguments.model]
    return open_text(arguments.output, options, arguments.resume)


def _translate(arguments, translator, search, lines: Iterator[str], out, first: int = 1) -> None:
    """Write the translations of the lines, which are counted from the first, a buffer at a time."""
    talking = not arguments.text and not arguments.input and sys.stdin.isatty()
    sources: list[str] = []  # of the buffer at work, to print beside their translations
    columns = Columns(lines, arguments)
    results = translator.translate_nbest(
        _remember(columns.texts(), sources),
        search,
        **columns.guides,
        first=first,
        attention=bool(arguments.print_alignment),
        batch_tokens=arguments.batch_tokens,
        buffer_size=1 if talking else arguments.buffer_size,
        progress=sys.stderr.isatty() and not (out is sys.stdout and out.isatty()),
    )
    for number, hypotheses in enumerate(results, first):
        out.write(_format(arguments, number, sources.pop(0), hypotheses))
        if not sources:
            out.flush()


def _format(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    if arguments.json:
        translations = [
            {"text": h.text, "score": round(h.score, 4)} | _describe_alignment(arguments, h)
            for h in hypotheses
        ]
        entry = {"source": source, "translations": translations}
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


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    from resmlp_mt.data.text import decode_lines, mend_surrogates, read_lines

    if arguments.text:  # where bytes that are no UTF-8 come as halves of surrogate pairs
        yield from (line for text in arguments.text for line in mend_surrogates(text).split("\n"))
    elif arguments.input:
        for path in arguments.input:
            yield from read_lines(path)
    else:
        yield from decode_lines(sys.stdin.buffer, "standard input")


def _remember(lines: Iterator[str], memory: list[str]) -> Iterator[str]:
    for line in lines:
        memory.append(line)
        yield line
