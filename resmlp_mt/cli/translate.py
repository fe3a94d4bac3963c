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
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from resmlp_mt.cli import flags
from resmlp_mt.cli.search_flags import add_search, read_search, split_columns
from resmlp_mt.cli.translate_files import Input, is_done, open_input, open_output
from resmlp_mt.errors import LineError, UserError
from resmlp_mt.translating.lines import STANDARD, group


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    switch, place = dict(action="store_true"), dict(metavar="N|NAME")
    either = dict(action=argparse.BooleanOptionalAction)
    add = parser.add_argument
    add("text", nargs="*", help="sentences; without any, standard input is read")
    add("--model", action="append", metavar="NAME|DIR|FILE", help="several translate together")
    flags.add_user_dir(parser)
    files = dict(type=Path, nargs="+", default=[], metavar="FILE")
    add("--input", **files, help="text, also .gz and .xz; - is standard input")
    add("--shard", metavar="I/N", help="only the I-th of N equal parts of the --input")
    said = "column N of lines with tabs, or field NAME of lines of JSON (m.text: text of object m)"
    add("--field", "--tsv-column", **place, help=f"translate {said}, and keep the others")
    add("--into", **place, help="put translations there, and keep the --field")
    add("--score-into", **place, help="put the score of each translation there")
    add("--output", type=Path, metavar="FILE", help="write there; .gz and .xz are compressed")
    add("--resume", **switch, help="go on with an --output that was stopped half way")
    said = 'print a line {"source", "unknown", "translations": [{"text", "score"}]} for each line'
    add("--json", **switch, help=f"{said}; unknown is the share of what the model never saw")
    add("--quiet", **switch, help="no bar, hint or warning on standard error")
    kinds = dict(nargs="?", const="word", choices=("word", "subword"))
    said = "print behind a tab which words belong together, as SOURCE-TARGET; or which subwords"
    add("--print-alignment", **kinds, help=said)
    said = "translate the sentences of a line one by one (default: as the model was trained)"
    add("--split-sentences", **either, help=said)
    said = "mend capitals, keep numbers, names and tags; or translate all as it is typed"
    add("--recase", **either, default=True, help=said)
    some = dict(type=flags.positive, metavar="N")
    add("--batch-tokens", **some, default=4096, help="source subwords a batch")
    add("--buffer-size", **some, default=1000, help="most lines at once")
    add("--threads", type=flags.thread_count, metavar="N", help="on a CPU (default: one a core)")
    flags.add_device(parser)
    add_search(parser)


def run(arguments: argparse.Namespace) -> None:
    """Translate and print."""
    from resmlp_mt.files.finding import pretrained_names
    from resmlp_mt.translating.glossary import Glossary, read_glossary
    from resmlp_mt.translating.translator import Translator

    if not arguments.model:
        shipped = ", ".join(pretrained_names("text"))
        raise UserError(f"--model is missing; name a folder, a checkpoint, or one of {shipped}")
    if arguments.text and arguments.input:
        raise UserError("give sentences or --input, not both")
    search, field = read_search(arguments), _choose_field(arguments)
    if arguments.output == STANDARD:
        arguments.output = None
    if arguments.resume and not arguments.output:
        raise UserError("--resume needs --output and the name of a file")
    if arguments.resume and is_done(arguments):
        said = f"{arguments.output} is finished; to make it anew, leave out --resume"
        return print(f"resmlp-mt translate: {said}", file=sys.stderr)
    terms = arguments.glossary and read_glossary(arguments.glossary)
    flags.import_user_dir(arguments)
    # Opened first: what cannot be written fails before the work.
    with open_output(arguments, terms) if arguments.output else nullcontext(sys.stdout) as out:
        load = Translator.from_pretrained
        translator = load(arguments.model, arguments.device, arguments.threads)
        given = open_input(arguments)
        if arguments.output:
            given.lines, given.first = out.follow(given.lines), given.first + out.lines
        else:
            out.reconfigure(encoding="utf-8")
        translate = partial(
            translator.translate_nbest,
            options=search,
            glossary=terms and Glossary(terms, translator.codec),
            attention=bool(arguments.print_alignment),
            split_sentences=arguments.split_sentences,
            recase=arguments.recase,
            batch_tokens=arguments.batch_tokens,
        )
        try:
            _write(arguments, translate, field, given, out)
        except LineError as error:
            raise error.at(given.find) from None


def _choose_field(arguments: argparse.Namespace):
    """The reader of texts from lines, as the flags say; None where lines are texts."""
    from resmlp_mt.translating.fields import choose_field

    if arguments.field is None:
        return flags.refuse_given(arguments, ("into", "score_into"), "needs --field")
    other = "goes without --field (or --tsv-column), which prints the line with its translation"
    names = ("json", "print_alignment", "prefix_column", "constraints")
    flags.refuse_given(arguments, names, f"{other}; --score-into gives scores")
    if arguments.nbest > 1:
        raise UserError(f"--nbest {other}")
    return choose_field(arguments.field, arguments.into, arguments.score_into)


def _write(
    arguments: argparse.Namespace,
    translate: Callable[..., Iterator[list]],
    field,
    given: Input,
    out,
) -> None:
    """Write the translations of lines, a group after the other, as they come.

    `translate` is `translate_nbest` with the options; `field` is as of `_choose_field`.
    """
    from resmlp_mt.translating.hypotheses import explain_doubt

    shown = sys.stderr.isatty() and not (arguments.quiet or (out is sys.stdout and out.isatty()))
    if shown:
        from tqdm import tqdm  # which takes a tenth of the start

    number, warned = given.first, arguments.quiet
    with tqdm(unit=" lines") if shown else nullcontext() as bar:
        for lines in group(given.lines, arguments.buffer_size, given.arrivals):
            puts = []
            if field is not None:
                taken = [field(line, given.find(i)) for i, line in enumerate(lines, number)]
                lines, puts = map(list, zip(*taken, strict=True))
            sources, guides = split_columns(lines, arguments)
            found = translate(sources, **guides, first=number, buffer_size=len(sources))
            for i, hypotheses in enumerate(found):
                best = hypotheses[0]
                if not warned and (said := explain_doubt(sources[i], best)):
                    warned = True
                    where = f"resmlp-mt translate: {given.find(number)}"
                    (tqdm.write if shown else print)(f"{where}: {said}", file=sys.stderr)
                if puts:
                    out.write(puts[i](best.text, best.score) + "\n")
                else:
                    out.write(_format_line(arguments, number, sources[i], hypotheses))
                number += 1
                if shown:
                    bar.update()
            out.flush()


def _format_line(arguments: argparse.Namespace, number: int, source: str, hypotheses: list) -> str:
    """The output for a line of the source, with its line ends; of its hypotheses, best first."""
    from resmlp_mt.translating.alignment import align_subwords, align_words

    kind = arguments.print_alignment
    align = align_words if kind == "word" else align_subwords
    pairs = [align(hypothesis.attention) for hypothesis in hypotheses] if kind else []
    if arguments.json:
        entries = [{"text": h.text, "score": round(h.score, 4)} for h in hypotheses]
        for entry, found, hypothesis in zip(entries, pairs, hypotheses, strict=False):
            entry["alignment"] = found
            if kind == "subword":
                for side in ("source", "target"):
                    words = [w for a in hypothesis.attention for w in getattr(a, side)[:-1]]
                    entry[f"{side}_subwords"] = words
        said = {"source": source, "unknown": round(hypotheses[0].unknown, 4)}
        return json.dumps(said | {"translations": entries}, ensure_ascii=False) + "\n"
    rows = ""
    for i, hypothesis in enumerate(hypotheses):
        before = f"{number}\t{hypothesis.score:.4f}\t" if arguments.nbest > 1 else ""
        behind = "\t" + " ".join(f"{s}-{t}" for s, t in pairs[i]) if kind else ""
        for line in hypothesis.text.split("\n"):  # a block of code has several
            rows += f"{before}{line}{behind}\n"
    return rows
