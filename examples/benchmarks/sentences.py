"""How well, and how fast, libraries find the ends of sentences in English and German.

    python examples/benchmarks/sentences.py --data FOLDER --csv FILE

`pairs` are neighbours of the held-out sets, two lines joined by a blank. A line serves that ends
with a stop and has no other mark before a blank. So each pair has one end, which is known.
`abbreviations` are lines with a full stop before a blank that ends no sentence. Those of the
held-out sets come first. Where they are too few, lines of ende-mix follow. Each stop stands behind
an initial, letters with stops, a word of five letters at most that ende-mix has with a stop more
often than without, or, in German, a number of two digits at most. Besides, what follows begins with
a small letter or a comma; or the translation has no mark before a blank, or the same two words.
A miss is an end that was not found. A false end is a line or a pair with an end that is none. Both
are shares of the lines or pairs. Seconds are those of the worst text of so many
characters: brackets, separators, words, quotes, or stops. Nothing there: a tenth of it took over
two seconds.
"""

import argparse
import lzma
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from races.report import append_rows, describe_here, print_table

from resmlp_mt.text.sentences import split_sentences

SETS = ("multi30k/val", "multi30k/test_2016_flickr", "tatoeba/valid", "tatoeba/test")
SETS += ("wmt/newstest2013", "wmt/newstest2014")
TRAIN = "ende-mix/train"
NAMES = {"en": "english", "de": "german"}
STOP = re.compile(r"[.!?…][\"'”“’»)\]]*$")
INNER = re.compile(r"[.!?…:][\"'”“’»)\]]*\s")
LOUD = re.compile(r"[!?…:][\"'”“’»)\]]*\s|\.[\"'”“’»)\]]+\s|\.\.\s")
DOTTED = re.compile(r"(?<!\S)[(„\"]?(\S*\w)\.\s+(\S+)")
INITIALS = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}|[^\W\d_]")
WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*")
WORST = ("(", "[a", "| ", " – ", "word ", "“a. ", "J. ", ". ", "a.")


def use_regex(language: str) -> Callable[[str], list[str]]:
    """Sentence breaks of UAX 29, without a list of words that they do not follow."""
    import regex

    letter = r"\p{SB=OLetter}\p{SB=Upper}\p{SB=Lower}\p{SB=STerm}\p{SB=ATerm}"
    break_ = rf"(?:\p{{SB=STerm}}|\p{{SB=ATerm}}(?![^{letter}]*\p{{SB=Lower}}))\p{{SB=Close}}*\K\s+"
    ends = regex.compile(break_)
    return lambda text: ends.sub("\n", text).split("\n")


def use_sentencex(language: str) -> Callable[[str], list[str]]:
    """It as it comes."""
    import sentencex

    return partial(sentencex.segment, language)


def use_pysbd(language: str) -> Callable[[str], list[str]]:
    """Rules of pragmatic_segmenter."""
    import pysbd

    return pysbd.Segmenter(language=language, clean=False).segment


def use_syntok(language: str) -> Callable[[str], list[str]]:
    """It knows no language by name."""
    from syntok import segmenter

    def split(text: str) -> list[str]:
        sentences = (line for part in segmenter.process(text) for line in part)
        return ["".join(token.spacing + token.value for token in line) for line in sentences]

    return split


def use_spacy(language: str) -> Callable[[str], list[str]]:
    """The sentencizer behind the tokenizer of the language."""
    import spacy

    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**8
    return lambda text: [sentence.text for sentence in pipeline(text).sents]


def use_nltk(language: str) -> Callable[[str], list[str]]:
    """Punkt without its downloaded tables."""
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer().tokenize


def use_moses(language: str) -> Callable[[str], list[str]]:
    """Moses' script and lists."""
    from sentence_splitter import SentenceSplitter

    return SentenceSplitter(language=language).split


def use_blingfire(language: str) -> Callable[[str], list[str]]:
    """Its one automaton."""
    import blingfire

    return lambda text: blingfire.text_to_sentences(text).split("\n")


SPLITTERS = {
    "resmlp_mt": ("sentencex", lambda language: partial(split_sentences, language=language)),
    "sentencex": ("sentencex", use_sentencex),
    "pysbd": ("pysbd", use_pysbd),
    "syntok": ("syntok", use_syntok),
    "spacy": ("spacy", use_spacy),
    "nltk": ("nltk", use_nltk),
    "sentence-splitter": ("sentence-splitter", use_moses),
    "blingfire": ("blingfire", use_blingfire),
    "regex": ("regex", use_regex),
}


def main() -> None:
    """Measure, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="with multi30k/, wmt/ and others")
    parser.add_argument("--splitters", nargs="+", choices=SPLITTERS, default=list(SPLITTERS))
    parser.add_argument("--pairs", type=int, default=2000, help="of each language")
    parser.add_argument("--lines", type=int, default=300, help="with abbreviations")
    parser.add_argument("--worst", type=int, default=10**6, help="characters of the worst texts")
    parser.add_argument("--show", action="store_true", help="print what is missed, and false ends")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for language in NAMES:
        cases = find_cases(arguments.data, language, arguments.pairs, arguments.lines)
        for name in arguments.splitters:
            package, make = SPLITTERS[name]
            split = make(language)
            row = {"splitter": name, "language": language}
            for kind, found in cases.items():
                row |= {kind: len(found), **score(split, found, kind, arguments.show)}
            row |= {"microseconds": f"{time_sentences(split, cases['pairs']):.1f}"}
            row |= {"worst_characters": arguments.worst}
            row |= {"worst_seconds": time_worst(split, arguments.worst)}
            rows.append(row | {"version": f"{package} {version(package)}"})
    rows = [row | describe_here() for row in rows]
    print_table(rows, ["false_pairs", "false_abbreviations"])
    if arguments.csv:
        append_rows(arguments.csv, rows)


def find_cases(data: Path, language: str, pairs: int, lines: int) -> dict[str, list[tuple]]:
    """Sentences with known ends: tuples of one or two of them."""
    draw = random.Random(1)
    held_out = [read_pairs(data / name, language) for name in SETS]
    train = read_pairs(data / TRAIN, language)
    joined = [
        (one, other)
        for found in held_out
        for one, other in pairwise([line for line, _ in found if holds_no_mark(line)])
    ]
    draw.shuffle(joined)
    short = find_abbreviations(line for line, _ in train)
    known = [line for found in held_out for line in find_known(found, language, short)]
    draw.shuffle(known)
    draw.shuffle(train)
    known += find_known(train, language, short)
    return {"pairs": joined[:pairs], "abbreviations": [(line,) for line in known[:lines]]}


def read_pairs(prefix: Path, language: str) -> list[tuple[str, str]]:
    """Lines of a set and their translations."""

    def read(language: str) -> list[str]:
        path = Path(f"{prefix}.{language}")
        if path.exists():
            return path.read_text(encoding="utf-8").split("\n")
        with lzma.open(f"{path}.xz", "rt", encoding="utf-8") as stream:
            return stream.read().split("\n")

    return list(zip(read(language), read("de" if language == "en" else "en"), strict=True))


def holds_no_mark(line: str) -> bool:
    """Whether a line is one sentence, since no mark but the last is before a blank."""
    return bool(STOP.search(line)) and not INNER.search(line)


def find_abbreviations(lines: Iterator[str]) -> set[str]:
    """Words that have a stop behind them, within lines, more often than not."""
    with_stop: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for line in lines:
        words.update(WORD.findall(line))
        with_stop.update(word for word, _ in DOTTED.findall(line))
    return {
        word for word, count in with_stop.items() if 4 < words[word] < 2 * count and len(word) < 6
    }


def find_known(found: list[tuple[str, str]], language: str, short: set[str]) -> list[str]:
    """Lines with stops before blanks that end no sentence."""

    def is_within(match: re.Match, translation: str) -> bool:
        word, behind = match.groups()
        number = language == "de" and re.fullmatch(r"\d{1,2}", word)
        if not (number or word in short or INITIALS.fullmatch(word)):
            return False
        same = f"{word}. {behind}" in translation
        return behind[0].islower() or behind[0] == "," or same or not INNER.search(translation)

    known = []
    for line, translation in found:
        stops = list(DOTTED.finditer(line))
        one = len(stops) == line.count(". ") > 0 and all(
            is_within(match, translation) for match in stops
        )
        if one and STOP.search(line) and not LOUD.search(line) and not line[0].islower():
            known.append(line)
    return known


def score(split: Callable, cases: list[tuple], kind: str, show: bool) -> dict[str, str]:
    """Misses and false ends, as shares of the cases in per cent."""
    missed = false = 0
    for case in cases:
        expected = {count_letters(case[0])} if len(case) > 1 else set()
        found, end = set(), 0
        for sentence in split(" ".join(case)):
            found.add(end := end + count_letters(sentence))
        found -= {0, end}
        missed += bool(expected - found)
        false += bool(found - expected)
        if show and found != expected:
            said = "missed" if expected - found else "false"
            print(said, split(" ".join(case)))
    shares = {"misses": missed} if kind == "pairs" else {}
    shares[f"false_{kind}"] = false
    return {name: f"{100 * count / len(cases):.2f}" for name, count in shares.items()}


def count_letters(text: str) -> int:
    """How many characters are no blanks, which some splitters drop."""
    return len("".join(text.split()))


def time_sentences(split: Callable, pairs: list[tuple]) -> float:
    """Microseconds for a sentence alone: the least of five rounds."""
    sentences = [one for one, _ in pairs]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        for sentence in sentences:
            split(sentence)
        seconds.append(time.perf_counter() - start)
    return 1e6 * min(seconds) / len(sentences)


def time_worst(split: Callable, longest: int) -> str:
    """Seconds for the slowest of the texts; "" where a tenth of it takes too long."""
    for size in (longest // 10, longest):
        seconds = []
        for text in WORST:
            start = time.perf_counter()
            split(text * (size // len(text)))
            seconds.append(time.perf_counter() - start)
            if size < longest and seconds[-1] > 2:
                return ""
    return f"{max(seconds):.2f}"


if __name__ == "__main__":
    main()
