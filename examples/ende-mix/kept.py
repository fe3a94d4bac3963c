"""A test set of what must stay as it is, and the share that a translation keeps.

    python examples/ende-mix/kept.py write --lang en --out kept
    resmlp-mt translate --model MODEL --input kept/source.en --output kept/translation
    python examples/ende-mix/kept.py score kept kept/translation

The sentences, English or German, hold names, numbers, addresses, emoji (behind a sentence and
inside it), words of other scripts, and literals, as names of files. They are drawn anew with each
--seed, so that few of them stood in any training text. Only long numbers are written in another
way in the other language: 12,500 becomes 12.500. `score` looks for each as a whole word in the
translation of its line.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from resmlp_mt.cli.flags import check_positive
from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file

_FIRST = "Anna Clara David Elena Emil Fatima Greta Hassan Ingrid Jonas Keiko Liam Mei Omar".split()
_LAST = "Becker Castillo Dubois Eriksson Fischer Haddad Ivanova Jensen Kowalski Nakamura".split()
_PLACES = "Aachen Boston Chicago Dortmund Helsinki Kassel Leipzig Madrid Oslo Sydney".split()
_WORDS = "amber basil cedar delta ember fjord garnet harbor indigo juniper krypton lumen".split()
_EMOJI = "😀 😂 🎉 👍 🚀 💙 🐕 🌍 🍕 ☕".split()
_FOREIGN = (
    "Эрмитаж Гоголь Παρθενών λόγος 東京 ありがとう 首尔 서울 안녕 القاهرة سلام ירושלים ताज ไทย"
)
_LITERALS = "{}.py {}_{}.txt %({})s ${{{}}} --{}-{} {}_{} /etc/{}/{} {}()".split()

# For each kind sentences in both languages, of which {} is what must stay.
_SENTENCES = {
    "name": {
        "en": [
            "{} is waiting at the station.",
            "I have known {} for many years.",
            "Have you already spoken with {}?",
            "Yesterday {} told me an old story.",
        ],
        "de": [
            "{} wartet am Bahnhof.",
            "Ich kenne {} seit vielen Jahren.",
            "Hast du schon mit {} gesprochen?",
            "Gestern hat mir {} eine alte Geschichte erzählt.",
        ],
    },
    "place": {
        "en": [
            "We are travelling to {} tomorrow.",
            "My sister lives in {}.",
            "The train to {} is late again.",
            "It rains a lot in {}.",
        ],
        "de": [
            "Wir fahren morgen nach {}.",
            "Meine Schwester wohnt in {}.",
            "Der Zug nach {} hat wieder Verspätung.",
            "In {} regnet es viel.",
        ],
    },
    "number": {
        "en": [
            "The book has {} pages.",
            "My room number is {}.",
            "There were {} people in the hall.",
            "Please call extension {}.",
        ],
        "de": [
            "Das Buch hat {} Seiten.",
            "Meine Zimmernummer ist {}.",
            "Es waren {} Menschen im Saal.",
            "Bitte rufen Sie die Durchwahl {} an.",
        ],
    },
    "version": {
        "en": [
            "Please install version {}.",
            "The error has been fixed in {}.",
            "Version {} is no longer supported.",
        ],
        "de": [
            "Bitte installieren Sie Version {}.",
            "Der Fehler wurde in {} behoben.",
            "Version {} wird nicht mehr unterstützt.",
        ],
    },
    "url": {
        "en": [
            "You can find more at {}",
            "See {} for details.",
            "I read that on {} yesterday.",
        ],
        "de": [
            "Mehr finden Sie unter {}",
            "Einzelheiten stehen auf {} im Netz.",
            "Das habe ich gestern auf {} gelesen.",
        ],
    },
    "e-mail": {
        "en": ["Write to {} if you have questions.", "My address is {} now.", "Send it to {}"],
        "de": [
            "Schreiben Sie an {}, wenn Sie Fragen haben.",
            "Meine Adresse ist jetzt {}",
            "Schick es an {}",
        ],
    },
    "emoji": {
        "en": ["Thank you very much {}", "See you tomorrow {}", "That was a nice day {}"],
        "de": ["Vielen Dank {}", "Bis morgen {}", "Das war ein schöner Tag {}"],
    },
    "script": {
        "en": [
            "The hotel is called {}.",
            "I don't know what {} means.",
            "On the sign it said: {}",
            "She wrote {} on the blackboard.",
        ],
        "de": [
            "Das Hotel heißt {}.",
            "Ich weiß nicht, was {} bedeutet.",
            "Auf dem Schild stand: {}",
            "Sie schrieb {} an die Tafel.",
        ],
    },
    "literal": {
        "en": [
            "Please open {} first.",
            "I have changed {}, but nobody has noticed.",
            "You will find {} in the list.",
            "What does {} mean?",
        ],
        "de": [
            "Bitte öffnen Sie zuerst {}.",
            "Ich habe {} geändert, aber niemand hat es gemerkt.",
            "Sie finden {} in der Liste.",
            "Was bedeutet {}?",
        ],
    },
    "inside": {
        "en": [
            "I am so happy {}, and you?",
            "We had a {} in the garden.",
            "That is great {}!",
            "I like it {} and I want more.",
        ],
        "de": [
            "Ich bin so froh {}, und du?",
            "Wir hatten ein {} im Garten.",
            "Das ist toll {}!",
            "Ich mag es {} und will mehr.",
        ],
    },
    "long": {
        "en": [
            "The town has {} inhabitants.",
            "It costs {} euros a year.",
            "There are {} books in the library.",
            "The company has {} employees.",
        ],
        "de": [
            "Die Stadt hat {} Einwohner.",
            "Es kostet {} Euro im Jahr.",
            "In der Bibliothek gibt es {} Bücher.",
            "Die Firma hat {} Mitarbeiter.",
        ],
    },
}


def main() -> int:
    """Write or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("--lang", choices=["en", "de"], required=True)
    writing.add_argument("--out", type=Path, required=True, metavar="DIR")
    writing.add_argument(
        "--each", type=int, default=100, metavar="N", help="sentences of a kind (%(default)s)"
    )
    writing.add_argument("--seed", type=int, default=1, metavar="N")
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path, help="what `write` made")
    scoring.add_argument("translation", type=Path)
    scoring.add_argument("--json", action="store_true", help="print JSON, with what was lost")
    arguments = parser.parse_args()
    try:
        if arguments.command == "write":
            check_positive(arguments, "each")
            write(arguments.lang, arguments.each, arguments.seed, arguments.out)
        else:
            score(arguments.folder, arguments.translation, arguments.json)
    except UserError as error:
        print(f"kept.py: {error}", file=sys.stderr)
        return 2
    return 0


def write(lang: str, each: int, seed: int, folder: Path) -> None:
    """Write source.LANG, and what must be kept of each line: kept.tsv, with kind and text."""
    draw = random.Random(seed)
    rows = []
    for kind, sentences in _SENTENCES.items():
        for i in range(each):
            kept = written = _draw(kind, draw)
            if kind == "long":
                german = kept.replace(",", ".")
                written, kept = (kept, german) if lang == "en" else (german, kept)
            rows.append((sentences[lang][i % len(sentences[lang])].format(written), kind, kept))
    with whole_file(folder / f"source.{lang}") as path:
        path.write_text("".join(f"{sentence}\n" for sentence, _, _ in rows), encoding="utf-8")
    with whole_file(folder / "kept.tsv") as path:
        path.write_text("".join(f"{kind}\t{kept}\n" for _, kind, kept in rows), encoding="utf-8")


def _draw(kind: str, draw: random.Random) -> str:
    if kind == "script":
        return draw.choice(_FOREIGN.split())
    if kind == "inside":
        return draw.choice(_EMOJI)
    if kind == "literal":
        one, other = draw.sample(_WORDS, 2)
        return draw.choice(_LITERALS).format(one, other)
    word = f"{draw.choice(_WORDS)}-{draw.choice(_WORDS)}"
    return {
        "name": f"{draw.choice(_FIRST)} {draw.choice(_LAST)}",
        "place": draw.choice(_PLACES),
        "number": str(draw.randint(13, 999)),
        "long": f"{int(10 ** draw.uniform(3, 7)):,}",
        "version": ".".join(str(draw.randint(1, 30)) for _ in range(3)),
        "url": f"https://www.{word}.org/{draw.choice(_WORDS)}/{draw.randint(1, 999)}",
        "e-mail": f"{draw.choice(_WORDS)}.{draw.randint(1, 99)}@{word}.com",
        "emoji": draw.choice(_EMOJI),
    }[kind]


def score(folder: Path, translation: Path, as_json: bool) -> None:
    """Print the share that is kept, of each kind and of all.

    Raises:
        UserError: If a file is missing, or the two are out of step.
    """
    wanted = [line.split("\t") for line in read_lines(folder / "kept.tsv")]
    for number, row in enumerate(wanted, 1):
        if len(row) != 2:
            raise UserError(f"{folder / 'kept.tsv'}, line {number}: not a kind, a tab and a text")
    lines = list(read_lines(translation))
    if len(lines) != len(wanted):
        raise UserError(f"{translation} has {len(lines):,} lines, not {len(wanted):,}")
    total, found, lost = Counter(), Counter(), []
    for line, (kind, kept) in zip(lines, wanted, strict=True):
        whole = (
            re.search(rf"(?<![\w@])(?<!\w[.,/-]){re.escape(kept)}(?!\w|[.,@/-]\w)", line)
            is not None
        )
        total.update([kind, "all"])
        found.update([kind, "all"] * whole)
        if not whole:
            lost.append({"kind": kind, "text": kept, "translation": line})
    shares = {kind: found[kind] / total[kind] for kind in [*_SENTENCES, "all"] if total[kind]}
    if as_json:
        print(json.dumps({"kept": shares, "lost": lost}, indent=1, ensure_ascii=False))
        return
    for kind, share in shares.items():
        print(f"{kind:8} {share:7.1%} of {total[kind]}")


if __name__ == "__main__":
    sys.exit(main())
