"""Twenty sentences of each test set, as the shipped models translate them: docs/samples.md.

    python scripts/samples.py translate --model NAME --set NAME --source FILE --reference FILE
    python scripts/samples.py page
    python scripts/samples.py page --check    # status 1 where the page is out of date

Of a test set with N lines, those with the numbers k, 2k ... 20k are taken; k is N / 20 without its
fraction. `translate` writes their rows in docs/samples.csv, in the place of those that the model
has for the set. `page` writes the page from the rows, and from the limits in the models' own cards.
"""

import argparse
import csv
import re
import sys
from pathlib import Path

from resmlp_mt.data.reading import read_parallel
from resmlp_mt.files.finding import PRETRAINED, pretrained_names
from resmlp_mt.files.output import whole_file

COUNT = 20
DOCS = Path(__file__).resolve().parents[1] / "docs"
ROWS, PAGE = DOCS / "samples.csv", DOCS / "samples.md"
COLUMNS = ("model", "set", "line", "source", "reference", "translation")
START = """# Twenty sentences of each test set

What the shipped translators make of test sets that they were not trained on: 20 lines of each,
evenly spaced, the good with the bad. Of N lines these are k, 2k ... 20k, with k = N / 20 rounded
down. Beam 5. No line was picked, and none was left out. [samples.csv](samples.csv) has the same
rows. `scripts/samples.py` made them, and says how to repeat it.
"""


def main() -> int:
    """Translate, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    translating = commands.add_parser("translate")
    translating.add_argument("--model", required=True, help="a shipped one")
    translating.add_argument("--set", required=True, help="what the page calls the test set")
    translating.add_argument("--source", type=Path, required=True)
    translating.add_argument("--reference", type=Path, required=True)
    writing = commands.add_parser("page")
    writing.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "translate":
        translate(arguments)
        return 0
    page = write_page(read_rows())
    if arguments.check:
        return int(PAGE.read_text(encoding="utf-8") != page)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def choose(lines: int) -> list[int]:
    """The numbers of the lines that are taken from a set, from 1 on."""
    step = max(lines // COUNT, 1)
    return list(range(step, lines + 1, step))[:COUNT]


def read_rows() -> list[dict[str, str]]:
    """The rows of the CSV, if there is one."""
    if not ROWS.exists():
        return []
    with open(ROWS, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def translate(arguments: argparse.Namespace) -> None:
    """Translate the lines of a set, and keep them with those of other models and sets."""
    from resmlp_mt import Translator

    sources, references = read_parallel(arguments.source, arguments.reference)
    numbers = choose(len(sources))
    translator = Translator.from_pretrained(arguments.model)
    translations = translator.translate([sources[n - 1] for n in numbers], beam=5)
    key = {"model": arguments.model, "set": arguments.set}
    rows = [row for row in read_rows() if not key.items() <= row.items()]
    for n, translation in zip(numbers, translations, strict=True):
        texts = sources[n - 1], references[n - 1], translation
        rows.append(key | dict(zip(COLUMNS[2:], (str(n), *texts), strict=True)))
    with whole_file(ROWS) as path, open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_page(rows: list[dict[str, str]]) -> str:
    """The page: a table for each model and set, and what the model's card says of its limits.

    Raises:
        SystemExit: If a shipped translator has no rows.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    if missing := set(pretrained_names("text")) - set(models):
        sys.exit(f"{ROWS.name} has nothing of {missing.pop()}: python scripts/samples.py translate")
    parts = [START]
    for model in models:
        card = (PRETRAINED / model / "README.md").read_text(encoding="utf-8")
        link = f"../resmlp_mt/pretrained/{model}/README.md"
        limits = re.search(r"\n## Limits\n\n(.*?)(?=\nThese figures |\n## |\Z)", card, re.S)
        parts.append(f"\n## {model}\n\nWhat it cannot do, by [its card]({link}):\n\n")
        parts.append(f"{limits[1].strip()}\n")
        for name in dict.fromkeys(row["set"] for row in rows if row["model"] == model):
            parts.append(f"\n### {name}\n\n| line | source | by people | by {model} |\n")
            parts.append("| --- | --- | --- | --- |\n")
            for row in rows:
                if (row["model"], row["set"]) == (model, name):
                    texts = [row[c].replace("|", "\\|") for c in COLUMNS[3:]]
                    parts.append(f"| {row['line']} | {' | '.join(texts)} |\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
