"""Choose the sets of the mix and binarize them.

train, valid, test (news), test1 (Tatoeba) and test2 (all domains):

    python examples/ende-mix/prepare.py --raw ende-mix --news newstest2014 --out data-bin/ende-mix

RAW holds train.en.xz, train.de.xz and train.domain.xz, where a line of the last names the source of
the pair of the same number. Held out of the mix are 1,000 pairs spread evenly over it, to validate;
1,000 short ones of Tatoeba, to test; and 200 of each domain, to test by domain. A domain is what
stands before the first hyphen: debian-ddtp and debian-install are one. OUT/raw/test2.domain names
that of each line. No training pair shares a side with what is held out, whatever its case, blanks
and punctuation. --pairs trains on so many of the others, spread evenly too. --monolingual writes
the German side of N of those that are left to OUT/raw/monolingual.de, and the text that is trained
on beside it. --balance repeats pairs of small domains, and --repeat those of one domain. --careless
adds pairs whose source is typed without care, and --swap pairs with another name or number in them.
--also trains on the pairs of a further file, too.
--copied writes targets to train1, where they are their own source: text that is in the target
language already shall stay as it is. fairseq trains on train and train1 together. Flags that are
not below are those of `resmlp-mt prepare`, such as --remove-identical.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from forms import find_form
from swapped import swap

from resmlp_mt.cli.flags import positive
from resmlp_mt.data.filters import FILTERS, Filter
from resmlp_mt.data.reading import find_side, read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file

_SIDES = tuple(enumerate(("en", "de")))


def main() -> int:
    """Choose, write raw text to a temporary folder, and prepare it."""
    arguments, others = build_parser().parse_known_args()
    langs = ("en", "de") if arguments.source_lang == "en" else ("de", "en")
    try:
        check(arguments, others)
        rows = read_rows(arguments.raw)
        sets = split(rows, arguments.held_out, arguments.per_domain, arguments.pairs)
        further = [row for path in arguments.also for row in read_pairs(path)]
        sets["train"] += _leave_out(list_held_out(sets), further, _letters)
        repeated = repeat(sets["train"], arguments.repeat)
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    sets["train"] = balance(sets["train"], arguments.balance) + repeated
    copied = _spread(sets["train"], round(arguments.copied * len(sets["train"])))
    unwanted = make_filters(others)
    copied = [row for row in copied if not any(leaves_out(*row[:2]) for leaves_out in unwanted)]
    sets["train"] += add_variants(sets, further, arguments.careless, arguments.swap, langs[0])
    with tempfile.TemporaryDirectory() as folder:
        for name, pairs in sets.items():
            for side, lang in _SIDES:
                _write(Path(folder, f"{name}.{lang}"), (pair[side] for pair in pairs))
        tests = [str(arguments.news), f"{folder}/tatoeba", f"{folder}/domains"]
        subwords = ["--vocab-size", arguments.vocab_size, "--joined"]
        if arguments.like:
            subwords = ["--like", arguments.like]
        longest = ["--max-length", arguments.max_length] if arguments.max_length else []
        flags = ["--test", ",".join(tests), *subwords, *longest, *others]
        status = binarize(langs, Path(folder), "train", arguments.out, flags)
        if not status and copied:
            lines = [row[("en", "de").index(langs[1])] for row in copied]
            status = _add_copied(lines, langs, Path(folder), arguments.out, longest)
    if not status:
        write_beside(rows, sets, arguments.monolingual, arguments.out / "raw")
    return status


def build_parser() -> argparse.ArgumentParser:
    """The flags; those of `resmlp-mt prepare` are not among them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR")
    parser.add_argument("--news", type=Path, required=True, help="prefix of the test set's files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=positive, metavar="N", help="default: all")
    parser.add_argument("--monolingual", type=int, default=0, metavar="N", help="default: none")
    parser.add_argument(
        "--held-out", type=positive, default=1000, metavar="N", help="of both kinds"
    )
    parser.add_argument(
        "--per-domain",
        type=positive,
        default=200,
        metavar="N",
        help="held out (default: %(default)s)",
    )
    parser.add_argument(
        "-s", "--source-lang", choices=["en", "de"], default="en", help="default: %(default)s"
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=1.0,
        metavar="T",
        help="repeat pairs until the share of each domain goes as its size to the power of 1/T",
    )
    parser.add_argument(
        "--repeat",
        action="append",
        default=[],
        metavar="DOMAIN[=N]",
        help="give all pairs of this domain once more, or N times; may be given several times",
    )
    parser.add_argument(
        "--also",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="train on the pairs of this file, too: lines of English, a tab and German. Its domain "
        "is its name up to the first dot or hyphen. May be given several times",
    )
    parser.add_argument(
        "--careless",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="give so many of the pairs once more, with the source in lower case, without its "
        "final stop, or with other quotes",
    )
    parser.add_argument(
        "--swap",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="give so many of the pairs once more, with another name, number or address in the "
        "place of one that both sides have, or with an emoji",
    )
    parser.add_argument(
        "--copied",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="give the target side of so many pairs as source and target, in train1",
    )
    parser.add_argument("--max-length", metavar="N", help="of all pairs to train on, in subwords")
    subwords = parser.add_mutually_exclusive_group()
    subwords.add_argument("--vocab-size", default="16000", help="default: %(default)s")
    subwords.add_argument("--like", metavar="MODEL", help="take its subwords, to train it further")
    return parser


def check(arguments: argparse.Namespace, others: list[str]) -> None:
    """Refuse what cannot be, before anything is read.

    Raises:
        UserError: With the flag.
    """
    if arguments.monolingual < 0:
        raise UserError(f"--monolingual is at least 0, not {arguments.monolingual}")
    if not arguments.balance >= 1:  # nor NaN
        raise UserError(f"--balance is at least 1, not {arguments.balance:g}")
    for name in ("careless", "swap", "copied"):
        if not 0 <= (share := getattr(arguments, name)) <= 1:
            raise UserError(f"--{name} is between 0 and 1, not {share:g}")
    for flag in others:
        name = flag.partition("=")[0]
        if name in ("--train", "--valid", "--test", "-t", "--target-lang"):
            raise UserError(f"{name}: this script chooses the sets and their languages itself")
    if "," in str(arguments.news):  # which `prepare --test` takes for two
        raise UserError(f"--news {arguments.news}: no comma may be in this name")
    for lang in ("en", "de"):
        find_side(str(arguments.news), lang)


def read_rows(folder: Path) -> list[tuple[str, str, str]]:
    """All pairs of the mix, as (English, German, source of the pair).

    Raises:
        UserError: If a file is missing or shorter than the others.
    """
    columns = [list(read_lines(folder / f"train.{part}.xz")) for part in ("en", "de", "domain")]
    if len({len(column) for column in columns}) > 1:
        raise UserError(f"{folder}: the three files differ in length")
    return list(zip(*columns, strict=True))


def read_pairs(path: Path) -> list[tuple[str, str, str]]:
    """The pairs of a file of two columns, as rows of the mix.

    Raises:
        UserError: If the file is missing, or a line has no two columns with text; with its number.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        sides = line.split("\t")
        if len(sides) != 2 or not all(map(str.strip, sides)):
            raise UserError(f"{path}, line {number}: not English, a tab and German")
        rows.append((*sides, path.name.partition(".")[0]))
    return rows


def add_variants(
    sets: dict[str, list[tuple[str, str, str]]],
    further: list[tuple[str, str, str]],
    careless: float,
    swapped: float,
    source: str,
) -> list[tuple[str, str, str]]:
    """So large shares of the training pairs, typed carelessly or with other names and numbers.

    Further pairs keep their names. German salutations go by them: Liebe Anna, lieber Tom.
    """
    named = set(further)
    mix = [row for row in sets["train"] if row not in named]
    typed = type_carelessly(sets["train"], careless, ("en", "de").index(source))
    return typed + _leave_out(list_held_out(sets), swap(mix, swapped), _letters)


def make_filters(flags: list[str]) -> list[Filter]:
    """Those filters of `resmlp-mt prepare` that the flags ask for and that look at single pairs."""
    names = ("remove_identical", "remove_wrong_language")
    asked = [name for name in names if f"--{name.replace('_', '-')}" in flags]
    return [FILTERS[name].make("en", "de") for name in asked]


def binarize(langs: tuple[str, str], folder: Path, train: str, out: Path, flags: list[str]) -> int:
    """Call `resmlp-mt prepare` on a set of the folder; the status."""
    return subprocess.run(
        [sys.executable, "-m", "resmlp_mt.cli", "prepare"]
        + ["--source-lang", langs[0], "--target-lang", langs[1]]
        + ["--train", f"{folder}/{train}", "--valid", f"{folder}/valid"]
        + ["--out", str(out), *flags]
    ).returncode


def write_beside(
    rows: list[tuple[str, str, str]],
    sets: dict[str, list[tuple[str, str, str]]],
    monolingual: int,
    folder: Path,
) -> None:
    """Write the domains of the test set, and German text that no training pair has, if asked."""
    kept = {"test2.domain": map(domain_of, sets["domains"])}
    if monolingual:
        kept["monolingual.de"] = (row[1] for row in _spread(list_left(rows, sets), monolingual))
        kept |= {f"train.{lang}": [row[i] for row in sets["train"]] for i, lang in _SIDES}
    for name, lines in kept.items():
        with whole_file(folder / name) as path:
            _write(path, lines)


def _add_copied(
    lines: list[str], langs: tuple[str, str], folder: Path, out: Path, longest: list[str]
) -> int:
    """Binarize lines that are both sides of a pair, as train1 of a prepared folder; the status.

    They go past the filters, which leave out pairs whose sides are the same. Those of pairs that
    the filters leave out are not among them.
    """
    for lang in langs:
        _write(folder / f"copied.{lang}", lines)
    like = ["--like", str(out), *longest]
    if status := binarize(langs, folder, "copied", folder / "copied.bin", like):
        return status
    for path in (folder / "copied.bin").glob("train.*"):
        shutil.copy(path, out / f"train1{path.name.removeprefix('train')}")
    report, added = (
        json.loads(Path(place, "report.json").read_text()) for place in (out, folder / "copied.bin")
    )
    report["train1"] = added["train"]
    with whole_file(out / "report.json") as path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def split(
    rows: list[tuple[str, str, str]], held_out: int, per_domain: int, pairs: int | None
) -> dict[str, list[tuple[str, str, str]]]:
    """Divide (source, target, domain) into train, valid, tatoeba and domains.

    Args:
        rows: All pairs.
        held_out: How many valid and tatoeba get.
        per_domain: How many of each domain the last gets, at most.
        pairs: How many shall be trained on; None for all that are left.
    """
    held = hold_out(rows, held_out, per_domain)
    train = _leave_out(list_held_out(held), rows, _letters)
    return {"train": _spread(train, pairs or len(train)), **held}


def hold_out(
    rows: list[tuple[str, str, str]], held_out: int, per_domain: int
) -> dict[str, list[tuple[str, str, str]]]:
    """The sets of `split` that nothing is trained on."""
    valid = _spread(rows, held_out)
    rest = _leave_out(valid, rows, str)
    short = [row for row in rest if row[2].startswith("tatoeba") and len(row[0].split()) <= 10]
    tatoeba = _spread(short, held_out)
    by_domain = defaultdict(list)
    for row in _leave_out(tatoeba, rest, str):
        by_domain[domain_of(row)].append(row)
    domains = [row for name in sorted(by_domain) for row in _spread(by_domain[name], per_domain)]
    return {"valid": valid, "tatoeba": tatoeba, "domains": domains}


def balance(rows: list[tuple[str, str, str]], temperature: float) -> list[tuple[str, str, str]]:
    """Repeat the pairs of small domains; the largest domain stays as it is.

    Args:
        rows: All pairs.
        temperature: With T, the share of a domain goes as its size to the power of 1/T: 1 changes
            nothing, and a large T makes all domains as large as the largest.
    """
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[domain_of(row)].append(row)
    largest = max(map(len, by_domain.values()), default=0)
    wanted = {
        name: round(largest * (len(pairs) / largest) ** (1 / temperature))
        for name, pairs in by_domain.items()
    }
    more = []
    for name, pairs in by_domain.items():
        times, rest = divmod(wanted[name] - len(pairs), len(pairs))
        more += pairs * times + (_spread(pairs, rest) if rest else [])
    return rows + more


def repeat(rows: list[tuple[str, str, str]], domains: list[str]) -> list[tuple[str, str, str]]:
    """All pairs of each of these domains, N times where it is given as DOMAIN=N.

    Raises:
        UserError: No pair is of such a domain, or N is no count.
    """
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[domain_of(row)].append(row)
    repeated = []
    for asked in domains:
        name, _, times = asked.partition("=")
        if name not in by_domain:
            known = ", ".join(sorted(by_domain))
            raise UserError(f"--repeat {asked}: no such domain, but {known}")
        if times and not (times.isdecimal() and int(times)):
            raise UserError(f"--repeat {asked}: behind = comes how often, 1 or more")
        repeated += by_domain[name] * int(times or 1)
    return repeated


def type_carelessly(
    rows: list[tuple[str, str, str]], share: float, side: int
) -> list[tuple[str, str, str]]:
    """So many pairs as people would type their source, each in one of the forms of forms.py."""
    careless = []
    for i, row in enumerate(_spread(rows, round(share * len(rows))) if share else []):
        text = row[side]
        for name in _CARELESS[i % len(_CARELESS)]:
            text = find_form(name, ("en", "de")[side])(text)
        if text != row[side] and text.strip():
            careless.append((*row[:side], text, *row[side + 1 :]))
    return careless


# Without a final stop and in lower case is how most people write to each other. Text in capitals is
# read in lower case by `resmlp-mt translate`.
_CARELESS = [
    ("lower-case",), ("no-stop",), ("lower-case", "no-stop"), ("lower-case",), ("curly-quotes",),
    ("straight-quotes", "no-stop"),
]  # fmt: skip


def list_held_out(sets: dict[str, list[tuple]]) -> list[tuple]:
    """The rows of all sets that nothing is trained on."""
    return [row for name, part in sets.items() if name != "train" for row in part]


def list_left(rows: list[tuple], sets: dict[str, list[tuple]]) -> list[tuple]:
    """The rows that are in no set, and have the German side of none."""
    known = {row[1] for row in sets["train"]}
    return [row for row in _leave_out(list_held_out(sets), rows, _letters) if row[1] not in known]


def domain_of(row: tuple[str, str, str]) -> str:
    """The domain of a row: the name of its source up to the first hyphen."""
    return row[2].partition("-")[0]


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _leave_out(known: list[tuple], rows: list[tuple], form: Callable[[str], str]) -> list[tuple]:
    """The rows of which no side has the form of one of those."""
    sides = {form(side) for row in known for side in row[:2]}
    return [row for row in rows if sides.isdisjoint(map(form, row[:2]))]


def _letters(text: str) -> str:
    """Letters and digits in lower case; the text itself where it has none."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def _spread(rows: list, count: int) -> list:
    """That many rows, evenly spaced; all where there are fewer."""
    if count >= len(rows):
        return rows[:]
    return [rows[i * len(rows) // count] for i in range(count)]


if __name__ == "__main__":
    sys.exit(main())
