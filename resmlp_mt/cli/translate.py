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
from collections.abc import Iterator
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
        "--input", type=Path, nargs="+", default=[], metavar="FILE", help="text files, .gz, .xz too"
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
        help='print a line {"source", "translations": [{"text", "score"}]} for each line',
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
        help="lines read at a time; 1 answers every line at once (default: %(default)s)",
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
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output")
    translator = Translator.from_pretrained(arguments.model, arguments.device, arguments.threads)
    lines = _lines(arguments)
    if not arguments.output:
        sys.stdout.reconfigure(encoding="utf-8")
        return _translate(arguments, translator, lines, sys.stdout)
    flags = (
        "model",
        "beam",
        "nbest",
        "lenpen",
        "json",
        "batch_tokens",
        "buffer_size",
        "split_sentences",
    )
    options = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in flags}
    with PartialText(arguments.output, options, arguments.resume) as part:
        _translate(arguments, translator, part.follow(lines), part, first=part.lines + 1)


def _translate(arguments, translator, lines: Iterator[str], out, first: int = 1) -> None:
    """Write the translations of the lines, which are counted from the first, a buffer at a time."""
    talking = not arguments.text and not arguments.input and sys.stdin.isatty()
    sources: list[str] = []  # of the buffer at work, to print beside their translations
    results = translator.translate_nbest(
        _remember(lines, sources),
        beam=arguments.beam,
        nbest=arguments.nbest,
        lenpen=arguments.lenpen,
        split_sentences=arguments.split_sentences,
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
        translations = [{"text": h.text, "score": round(h.score, 4)} for h in hypotheses]
        entry = {"source": source, "translations": translations}
        return json.dumps(entry, ensure_ascii=False) + "\n"
    if arguments.nbest > 1:
        return "".join(f"{number}\t{h.score:.4f}\t{h.text}\n" for h in hypotheses)
    return hypotheses[0].text + "\n"


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
