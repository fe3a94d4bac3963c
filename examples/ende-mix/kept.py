"""A test set of what must stay as it is, and the share that a translation keeps.

    python examples/ende-mix/kept.py write --lang en --out kept
    resmlp-mt translate --model MODEL --input kept/source.en --output kept/translation
    python examples/ende-mix/kept.py score kept kept/translation

The sentences, English or German, hold names, numbers, accounts, telephones, times of day,
addresses, emoji (behind a sentence and inside it), words of other scripts, literals, as names of
files, identifiers, and placeholders with blanks. They are drawn anew with each --seed, so that few
of them stood in any training text. Only long numbers and times are written in another way in the
other language: 12,500 becomes 12.500, and 19:30 may become 7:30 pm. `score` looks for each as a
whole word in the translation of its line, and counts the lines that stay as they are.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from resmlp_mt.cli.flags import positive
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
_IDENTIFIERS = (
    "KB{n} us-{a}-{d} node-{t}-{a} {a}-{b}{d} v{d}.{d}.{t}-rc{d} A{t}B{n} {a}_{n}".split()
)
_BLANKS = (
    "{{ %s | upper }}", "{%% if %s %%}", "<%%= %s.%s %%>", "{%s, number}", "${ %s }",
    "{%s, plural, one {# file} other {# files}}", "`git %s -m %s`",
)  # fmt: skip
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
    "iban": {
        "en": [
            "Please transfer the money to {}.",
            "My account number is {} now.",
            "Is {} still your account?",
        ],
        "de": [
            "Bitte überweisen Sie das Geld auf {}.",
            "Meine Kontonummer ist jetzt {}",
            "Ist {} noch Ihr Konto?",
        ],
    },
    "isbn": {
        "en": ["The book {} is out of print.", "I am looking for {}", "Have you ordered {} yet?"],
        "de": ["Das Buch {} ist vergriffen.", "Ich suche {}", "Haben Sie {} schon bestellt?"],
    },
    "phone": {
        "en": [
            "Call us at {}.",
            "My new number is {}, and yours?",
            "You can reach me at {} today.",
        ],
        "de": [
            "Rufen Sie uns unter {} an.",
            "Meine neue Nummer ist {}, und deine?",
            "Heute erreichen Sie mich unter {}.",
        ],
    },
    "groups": {
        "en": ["The town has {} inhabitants.", "It costs {} euros a year.", "We sold {} books."],
        "de": [
            "Die Stadt hat {} Einwohner.",
            "Es kostet {} Euro im Jahr.",
            "Wir verkauften {} Bücher.",
        ],
    },
    "time": {
        "en": ["The train leaves at {}.", "We will meet at {} tomorrow.", "The shop opens at {}"],
        "de": [
            "Der Zug fährt um {} Uhr.",
            "Wir treffen uns morgen um {} Uhr.",
            "Der Laden öffnet um {} Uhr",
        ],
    },
    "identifier": {
        "en": ["Please install {} first.", "The server is called {}.", "What does {} mean?"],
        "de": [
            "Bitte installieren Sie zuerst {}.",
            "Der Server heißt {}.",
            "Was bedeutet {}?",
        ],
    },
    "blanks": {
        "en": [
            "There are {} in the list.",
            "Please write {} first.",
            "You have {}, and I have none.",
        ],
        "de": [
            "In der Liste gibt es {}.",
            "Bitte schreiben Sie zuerst {}.",
            "Sie haben {}, und ich habe keine.",
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
        "--each", type=positive, default=100, metavar="N", help="sentences of a kind (%(default)s)"
    )
    writing.add_argument("--seed", type=int, default=1, metavar="N")
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path, help="what `write` made")
    scoring.add_argument("translation", type=Path)
    scoring.add_argument("--json", action="store_true", help="print JSON, with what was lost")
    arguments = parser.parse_args()
    try:
        if arguments.command == "write":
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
    if kind in ("identifier", "blanks"):
        return _draw_code(kind, draw)
    if kind in ("iban", "isbn", "phone", "groups"):
        return _draw_digits(kind, draw)
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
        "time": f"{draw.randint(1, 23)}:{draw.choice((0, 0, 5, 15, 30, 45, 50)):02}",
    }[kind]


def _draw_digits(kind: str, draw: random.Random) -> str:
    def digits(*counts: int) -> list[str]:
        return ["".join(draw.choices("0123456789", k=count)) for count in counts]

    if kind == "iban":
        return f"DE{' '.join(digits(2, 4, 4, 4, 4, 2))}"
    if kind == "isbn":
        return draw.choice(["978-{}-{}-{}-{}", "978 {} {} {} {}"]).format(*digits(1, 2, 6, 1))
    if kind == "phone":
        shape = draw.choice(
            ["+49 {} {} {}", "0{}/{}{}", "(0{}) {}-{}", "01 {} {} {}", "+1-{}-{}-{}"]
        )
        return shape.format(*digits(2, 2, 2) if shape[:2] == "01" else digits(3, 3, 4))
    return " ".join([str(draw.randint(1, 999)), *digits(*draw.choice([(3,), (3, 3)]))])


def _draw_code(kind: str, draw: random.Random) -> str:
    one, other = draw.sample(_WORDS, 2)
    if kind == "blanks":
        shape = draw.choice(_BLANKS)
        return shape % (one, other)[: shape.replace("%%", "").count("%s")]
    digit, ten, number = draw.randint(1, 9), draw.randint(10, 99), draw.randint(100_000, 9_999_999)
    return draw.choice(_IDENTIFIERS).format(a=one, b=other, d=digit, t=ten, n=number)


def score(folder: Path, translation: Path, as_json: bool) -> None:
    """Print the share that is kept, of each kind and of all, and how many lines stay as they are.

    Raises:
        UserError: If a file is missing, or they are out of step.
    """
    sources = [line for path in sorted(folder.glob("source.*")) for line in read_lines(path)]
    wanted = [line.split("\t") for line in read_lines(folder / "kept.tsv")]
    for number, row in enumerate(wanted, 1):
        if len(row) != 2:
            raise UserError(f"{folder / 'kept.tsv'}, line {number}: not a kind, a tab and a text")
    lines = list(read_lines(translation))
    for path, read in (translation, lines), (folder / "source.*", sources):
        if len(read) != len(wanted):
            raise UserError(f"{path} has {len(read):,} lines, not {len(wanted):,}")
    total, found, stays, lost = Counter(), Counter(), Counter(), []
    for source, line, (kind, kept) in zip(sources, lines, wanted, strict=True):
        pattern = _match_time(kept) if kind == "time" else re.escape(kept)
        whole = (
            re.search(rf"(?<![\w@])(?<!\w[.,/-])(?:{pattern})(?!\w|[.,@/-]\w)", line) is not None
        )
        total.update([kind, "all"])
        found.update([kind, "all"] * whole)
        stays.update([kind, "all"] * (line == source))
        if not whole:
            lost.append({"kind": kind, "text": kept, "translation": line})
    shares = {kind: found[kind] / total[kind] for kind in [*_SENTENCES, "all"] if total[kind]}
    if as_json:
        found = {"kept": shares, "stays": stays, "lost": lost}
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for kind, share in shares.items():
        print(f"{kind:10} {share:7.1%} of {total[kind]}, {stays[kind]} stay as they are")


def _match_time(time: str) -> str:
    """A pattern for a time of day, which languages count to 12 or to 24."""
    hour, minutes = time.split(":")
    behind = rf"[:.]{minutes}" if int(minutes) else r"(?:[:.]00|(?![:.]\d))"
    half = "[aA]" if int(hour) < 12 else "[pP]"
    early = rf"{(int(hour) - 1) % 12 + 1}{behind}\s?{half}\.?[mM]"
    return rf"0?{hour}{behind}|{early}"


if __name__ == "__main__":
    sys.exit(main())
