r"""A test set in the forms in which people type, and what each form costs.

    python examples/ende-mix/forms.py write data-bin/ende-mix/raw/test2.en --out forms
    for form in forms/*.source; do
        resmlp-mt translate --model MODEL --input "$form" --output "${form%.source}.translation"
    done
    python examples/ende-mix/forms.py score forms --ref data-bin/ende-mix/raw/test2.de

`score` compares with the clean form the sentences that a form changes, and no others: of those,
BLEU of the clean form, BLEU of this form, and the second as a share of the first; then the same
regardless of case. The references stay as they are. Of the form `bold`, in which a word of each
sentence is in bold type, a pair of marks is left out of each translation before.
"""

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path

from sacrebleu.metrics import BLEU

from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file

_BOLD = re.compile(r"\*\*(.+?)\*\*")
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
            write(_read_sentences(arguments.source), arguments.source.suffix[1:], arguments.out)
        else:
            score(arguments.folder, _read_sentences(arguments.ref))
    except UserError as error:
        print(f"forms.py: {error}", file=sys.stderr)
        return 2
    return 0


def write(sentences: list[str], lang: str, folder: Path) -> None:
    """Write FORM.source for each form."""
    for name in FORMS:
        form = find_form(name, lang)
        with whole_file(folder / f"{name}.source") as path:
            texts = map(form, sentences)
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def score(folder: Path, references: list[str]) -> None:
    """Print a row for each form.

    Raises:
        UserError: If a file is missing or has not as many sentences as it should.
    """
    if not any(folder.glob("*.source")):
        raise UserError(f"{folder}: no sources in this folder; `forms.py write` makes them")
    clean = _read_sentences(folder / "clean.source")
    if len(clean) != len(references):
        raise UserError(f"{len(clean):,} sources in {folder}, but {len(references):,} references")
    sources = {form: _read_form(folder / f"{form}.source", clean) for form in FORMS}
    translations = {form: _read_form(folder / f"{form}.translation", clean) for form in FORMS}
    translations["bold"] = [_BOLD.sub(r"\1", text) for text in translations["bold"]]
    there = [i for i, text in enumerate(clean) if text.strip()]
    metrics = BLEU(), BLEU(lowercase=True)
    print("| form | sentences | clean | BLEU | kept | clean, any case | BLEU | kept |")
    print("| --- " * 8 + "|")
    for form in FORMS:
        lines = [i for i in there if sources[form][i] != clean[i] or form == "clean"]
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


def _read_sentences(path: Path) -> list[str]:
    sentences = list(read_lines(path))
    if not any(map(str.strip, sentences)):
        raise UserError(f"{path}: no sentence in it")
    return sentences


def _read_form(path: Path, clean: list[str]) -> list[str]:
    """A text for each of the clean sentences."""
    texts = list(read_lines(path))
    if len(texts) != len(clean):
        raise UserError(f"{path} has {len(texts):,} lines, not {len(clean):,}")
    return texts


def _curl(text: str, quotes: str = "“”‘") -> str:
    """Straight quotes made curly. What stands within or behind a word is an apostrophe."""
    text = re.sub(r"(^|[\s(\[\"])'", rf"\1{quotes[2]}", text).replace("'", "’")
    marks = cycle(quotes[:2])
    return re.sub('"', lambda _: next(marks), text)


def find_form(name: str, lang: str) -> Callable[[str], str]:
    """A form of text in a language: German has quotes of its own."""
    if name == "curly-quotes" and lang == "de":
        return partial(_curl, quotes="„“‚")
    return FORMS[name]


def _embolden(text: str) -> str:
    """The word in the middle in bold type of Markdown, without the punctuation around it."""
    words = list(re.finditer(r"\w(?:\S*\w)?", text))
    if not words:
        return text
    start, end = words[len(words) // 2].span()
    return f"{text[:start]}**{text[start:end]}**{text[end:]}"


FORMS: dict[str, Callable[[str], str]] = {
    "clean": str,
    "lower-case": str.lower,
    "no-stop": lambda text: re.sub(r"\s*[.!?…]+([\"'”’»)]*)\s*$", r"\1", text),
    "straight-quotes": lambda text: text.translate(_STRAIGHT),
    "curly-quotes": _curl,
    "double-spaces": lambda text: text.replace(" ", "  "),
    "capitals": str.upper,
    "bold": _embolden,
}


if __name__ == "__main__":
    sys.exit(main())
