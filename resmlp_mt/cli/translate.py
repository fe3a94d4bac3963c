"""Raw text in, raw text out: one line a line, in order, empty lines kept.

Takes sentences as arguments, files with --input, or standard input. Lines that are too long for
the model are split at sentence ends and joined again.

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
    from resmlp_mt.errors import UserError
    from resmlp_mt.inference.translator import Translator

    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    if not 1 <= arguments.nbest <= arguments.beam:
        raise UserError(f"--nbest {arguments.nbest} must be between 1 and --beam {arguments.beam}")
    check_positive(arguments, "batch_tokens", "buffer_size")
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    translator = Translator.from_pretrained(arguments.model, arguments.device, arguments.threads)
    talking = not arguments.text and not arguments.input and sys.stdin.isatty()
    sources: list[str] = []  # of the buffer at work, to print beside their translations
    results = translator.translate_nbest(
        _remember(_lines(arguments), sources),
        beam=arguments.beam,
        nbest=arguments.nbest,
        lenpen=arguments.lenpen,
        batch_tokens=arguments.batch_tokens,
        buffer_size=1 if talking else arguments.buffer_size,
        progress=sys.stderr.isatty() and not sys.stdout.isatty(),
    )
    sys.stdout.reconfigure(encoding="utf-8")
    for number, hypotheses in enumerate(results, 1):
        source = sources.pop(0)
        if arguments.json:
            translations = [{"text": h.text, "score": round(h.score, 4)} for h in hypotheses]
            print(json.dumps({"source": source, "translations": translations}, ensure_ascii=False))
        elif arguments.nbest > 1:
            for hypothesis in hypotheses:
                print(f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}")
        else:
            print(hypotheses[0].text)
        if not sources:
            sys.stdout.flush()


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    from resmlp_mt.data.text import decode_lines, read_lines

    if arguments.text:
        yield from (line for text in arguments.text for line in text.split("\n"))
    elif arguments.input:
        for path in arguments.input:
            yield from read_lines(path)
    else:
        yield from decode_lines(sys.stdin.buffer, "standard input")


def _remember(lines: Iterator[str], memory: list[str]) -> Iterator[str]:
    for line in lines:
        memory.append(line)
        yield line
