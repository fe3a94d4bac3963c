"""Raw text in, raw text out: one line a line, in order, empty lines kept.

Takes sentences as arguments, files with --input, or standard input. A model that was trained on
single sentences gets them one by one, and the line is joined again.

Long work goes to --output FILE, which appears when it is finished; stopped half way, the same
command with --resume goes on.

  resmlp-mt translate --model multi30k-en-de "A man rides a bike."
  resmlp-mt translate --model checkpoints/mine < text.en > text.de
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from resmlp_mt.cli.flags import add_device, check_positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("text", nargs="*", help="sentences; without any, standard input is read")
    parser.add_argument(
        "--model",
        required=True,
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or what 'resmlp-mt export' made",
    )
    parser.add_argument(
        "--input",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="text files, .gz, .xz too; - is standard input",
    )
    parser.add_argument(
        "--tsv-column",
        type=int,
        metavar="N",
        help="lines have columns between tabs: translate the N-th, counted from 1, and keep the "
        "others as they are",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there instead of to standard output"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with an --output that was stopped half way"
    )
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--nbest",
        type=int,
        default=1,
        metavar="N",
        help="print the N best, as number of the line, score and translation between tabs",
    )
    parser.add_argument(
        "--lenpen",
        type=float,
        default=1.0,
        metavar="X",
        help="length penalty: above 1 favours longer translations (default: %(default)s)",
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
        "--split-sentences",
        action=argparse.BooleanOptionalAction,
        help="translate each sentence of a line by itself, or leave lines whole where they are not "
        "too long (default: as the model was trained)",
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
        help="lines translated together, at most; what comes through a pipe or from a terminal is "
        "answered as it comes (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads on a CPU (default: one a core)",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Translate and print."""
    from resmlp_mt.data.output import PartialText
    from resmlp_mt.errors import UserError
    from resmlp_mt.inference.translator import Translator

    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    if not 1 <= arguments.nbest <= arguments.beam:
        raise UserError(f"--nbest {arguments.nbest} must be between 1 and --beam {arguments.beam}")
    check_positive(arguments, "batch_tokens", "buffer_size")
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    if arguments.tsv_column is not None:
        check_positive(arguments, "tsv_column")
        if arguments.json or arguments.nbest > 1:
            raise UserError("--tsv-column prints the columns: leave out --json and --nbest")
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output")
    translator = Translator.from_pretrained(arguments.model, arguments.device, arguments.threads)
    lines, ready = _open(arguments)
    if not arguments.output:
        sys.stdout.reconfigure(encoding="utf-8")
        return _translate(arguments, translator, lines, ready, sys.stdout)
    flags = (
        "model",
        "beam",
        "nbest",
        "lenpen",
        "json",
        "batch_tokens",
        "buffer_size",
        "split_sentences",
        "tsv_column",
    )
    options = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in flags}
    with PartialText(arguments.output, options, arguments.resume) as part:
        _translate(arguments, translator, part.follow(lines), ready, part, first=part.lines + 1)


def _translate(arguments, translator, lines: Iterator[str], ready, out, first: int = 1) -> None:
    """Write the translations of the lines, which are counted from the first, as the lines come."""
    from tqdm import tqdm

    from resmlp_mt.data.arrivals import take_arrived
    from resmlp_mt.inference.translator import MOSTLY, explain_unknown

    quiet = arguments.quiet or not sys.stderr.isatty() or (out is sys.stdout and out.isatty())
    number, warned = first, arguments.quiet
    with tqdm(unit=" lines", disable=quiet) as bar:
        for group in take_arrived(lines, arguments.buffer_size, ready):
            sources = [_source(arguments, line, i) for i, line in enumerate(group, number)]
            found = translator.translate_nbest(
                sources,
                beam=arguments.beam,
                nbest=arguments.nbest,
                lenpen=arguments.lenpen,
                split_sentences=arguments.split_sentences,
                batch_tokens=arguments.batch_tokens,
                buffer_size=len(group),
            )
            for line, source, hypotheses in zip(group, sources, found, strict=True):
                unknown = translator.share_unknown(source)
                if unknown > MOSTLY and not warned:
                    warned = True
                    message = f"resmlp-mt translate: line {number}: {explain_unknown(source)}"
                    tqdm.write(message, file=sys.stderr)
                out.write(_format(arguments, number, line, unknown, hypotheses))
                number += 1
                bar.update()
            out.flush()


def _source(arguments: argparse.Namespace, line: str, number: int) -> str:
    """What is translated of a line."""
    from resmlp_mt.errors import UserError

    if arguments.tsv_column is None:
        return line
    columns = line.split("\t")
    if len(columns) < arguments.tsv_column:
        raise UserError(
            f"line {number} has {len(columns)} columns: there is no --tsv-column "
            f"{arguments.tsv_column}"
        )
    return columns[arguments.tsv_column - 1]


def _format(
    arguments: argparse.Namespace, number: int, line: str, unknown: float, hypotheses: list
) -> str:
    if arguments.json:
        translations = [{"text": h.text, "score": round(h.score, 4)} for h in hypotheses]
        entry = {"source": line, "unknown": round(unknown, 4), "translations": translations}
        return json.dumps(entry, ensure_ascii=False) + "\n"
    if arguments.nbest > 1:
        return "".join(f"{number}\t{h.score:.4f}\t{h.text}\n" for h in hypotheses)
    if arguments.tsv_column is not None:
        columns = line.split("\t")
        columns[arguments.tsv_column - 1] = hypotheses[0].text
        return "\t".join(columns) + "\n"
    return hypotheses[0].text + "\n"


def _open(arguments: argparse.Namespace) -> tuple[Iterator[str], Callable[[float], bool]]:
    """The lines, and whether the next comes within so many seconds."""
    from resmlp_mt.data.arrivals import Lines
    from resmlp_mt.data.text import mend_surrogates

    if arguments.text:  # where bytes that are no UTF-8 come as halves of surrogate pairs
        texts = map(mend_surrogates, arguments.text)
        return (line for text in texts for line in text.split("\n")), lambda seconds: True
    if not arguments.input and sys.stdin.isatty() and not arguments.quiet:
        print("type lines to translate; Ctrl-D ends", file=sys.stderr)
    lines = Lines(arguments.input or [Path("-")])
    return iter(lines), lines.ready
