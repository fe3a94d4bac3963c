"""A test set in the forms in which people type, and what each form costs.

    python examples/ende-mix/forms.py write data-bin/ende-mix/raw/test2.en --out forms
    for form in forms/*.source; do
        resmlp-mt translate --model MODEL --input "$form" --output "${form%.source}.translation"
    done
    python examples/ende-mix/forms.py score forms --ref data-bin/ende-mix/raw/test2.de

`write` makes a file of sources for each form. `score` compares with the clean form the sentences
that a form changes, and no others: of those, BLEU of the clean form, BLEU of this form, and the
second as a share of the first; then the same regardless of case. The references stay as they are.
"""

import argparse
import re
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from sacrebleu.metrics import BLEU

from resmlp_mt.data.text import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file

_STRAIGHT = str.maketrans("“”„«»‘’‚", '"""""\'\'\'')


def main() -> int:
    """Write or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("source", type=Path, help="the clean sources, a sentence a line")
    writing.add_argument("--out", type=Path, required=True, metavar="DIR")
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path, help="with sources and translations")
    scoring.add_argument("--ref", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    try:
        if arguments.command == "write":
            sentences, lang = list(read_lines(arguments.source)), arguments.source.suffix[1:]
            write(sentences, lang, arguments.out)
        else:
            score(arguments.folder, list(read_lines(arguments.ref)))
    except UserError as error:
        print(f"forms.py: {error}", file=sys.stderr)
        return 2
    return 0


def write(sentences: list[str], lang: str, folder: Path) -> None:
    """Write FORM.source for each form. That of `newline` has two lines a sentence."""
    for name, form in FORMS.items():
        if name == "curly-quotes" and lang == "de":
            form = _curl_german
        with whole_file(folder / f"{name}.source") as path:
            path.write_text("".join(f"{form(line)}\n" for line in sentences), encoding="utf-8")


def score(folder: Path, references: list[str]) -> None:
    """Print a row for each form.

    Raises:
        UserError: If a file is missing or has not as many lines as it should.
    """
    expected = len(references)
    sources = {form: _read(folder, form, "source", expected) for form in FORMS}
    translations = {form: _read(folder, form, "translation", expected) for form in FORMS}
    metrics = BLEU(), BLEU(lowercase=True)
    print("| form | sentences | clean | BLEU | kept | clean, any case | BLEU | kept |")
    print("| --- " * 8 + "|")
    for form in FORMS:
        lines = [i for i in range(expected) if sources[form][i] != sources["clean"][i]]
        lines = lines or list(range(expected) if form == "clean" else [])
        cells = [form, str(len(lines))]
        for metric in metrics if lines else ():
            kept_references = [references[i] for i in lines]
            before, after = (
                metric.corpus_score([translations[name][i] for i in lines], [kept_references]).score
                for name in ("clean", form)
            )
            cells += [f"{before:.1f}", f"{after:.1f}", f"{after / before:.0%}" if before else "-"]
        print("| " + " | ".join(cells + ["-"] * (8 - len(cells))) + " |")
    print(*(metric.get_signature() for metric in metrics), sep="\n")


def _read(folder: Path, form: str, part: str, expected: int) -> list[str]:
    """A text for each sentence. A sentence of two lines keeps its newline in the source alone."""
    path = folder / f"{form}.{part}"
    lines = list(read_lines(path))
    each = 2 if form == "newline" else 1
    if len(lines) != each * expected:
        raise UserError(f"{path} has {len(lines):,} lines, not {each * expected:,}")
    if each == 1:
        return lines
    return [
        ("\n" if part == "source" else " ").join(pair).strip(" ")
        for pair in zip(lines[::2], lines[1::2], strict=True)
    ]


def _curl(text: str, quotes: str = "“”‘") -> str:
    """Straight quotes made curly. What stands within or behind a word is an apostrophe."""
    text = re.sub(r"(^|[\s(\[\"])'", rf"\1{quotes[2]}", text).replace("'", "’")
    marks = cycle(quotes[:2])
    return re.sub('"', lambda _: next(marks), text)


def _curl_german(text: str) -> str:
    return _curl(text, "„“‚")


def _break(text: str) -> str:
    """Two lines, cut at the blank next to the middle; the second is empty where there is none."""
    blanks = [match.start() for match in re.finditer(" ", text)]
    cut = min(blanks, key=lambda i: abs(2 * i - len(text)), default=len(text))
    return f"{text[:cut]}\n{text[cut + 1 :]}"


FORMS: dict[str, Callable[[str], str]] = {
    "clean": str,
    "lower-case": str.lower,
    "no-stop": lambda text: re.sub(r"\s*[.!?…]+([\"'”’»)]*)\s*$", r"\1", text),
    "straight-quotes": lambda text: text.translate(_STRAIGHT),
    "curly-quotes": _curl,
    "double-spaces": lambda text: text.replace(" ", "  "),
    "capitals": str.upper,
    "newline": _break,
}


if __name__ == "__main__":
    sys.exit(main())
