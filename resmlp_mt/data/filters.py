"""Which training pairs are left out: filters of raw text in a table, and limits of lengths."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from resmlp_mt.data.reading import Block
from resmlp_mt.errors import UserError
from resmlp_mt.text.sentences import base_language

# Takes the two sides of a pair: whether it is left out; or, for a filter that compares pairs with
# one another, the value that it compares.
Filter = Callable[[str, str], bool | int]

# How many times as likely as its own another language must be. At 10, of 4,000 pairs of clean text
# 0.2% of the sides were taken for wrong, and of sides in the pair's other language 96% were found.
_ODDS = 10
# The same for Japanese without kana, which is short and easily taken for Chinese: of 94 signs,
# names and headings 18 were wrong at 10, and 1 at 100. Most Chinese sentences still are.
_KANJI_ODDS = 100
_HAN, _KANA = re.compile("[\u3400-\u9fff\uf900-\ufaff]"), re.compile("[\u3041-\u30ff\uff66-\uff9f]")
# Other languages that py3langid finds in text of these: of vowelled Hebrew that it is ancient, of
# Greek with all accents likewise, and of Chinese names that they are Wu.
_ALSO = {"he": "hbo", "el": "grc", "zh": "wuu"}


@dataclass(frozen=True)
class FilterKind:
    """A filter that can be asked for.

    Attributes:
        reason: In the report, for the pairs that it leaves out.
        make: Makes the filter for a source and a target language. It may run in any process.
        decide: Makes a function of the filter's findings in the order of the text, in one process:
            whether the pair is left out.
    """

    reason: str
    make: Callable[[str, str], Filter]
    decide: Callable[[], Callable[[bool | int], bool]] = lambda: bool


@dataclass(frozen=True)
class Limits:
    """Which training pairs are kept, by their lengths.

    Attributes:
        max_length: Longest sentence in subwords; longer pairs are dropped.
        max_ratio: Largest ratio of the two lengths; pairs beyond are dropped.
    """

    max_length: int
    max_ratio: float

    def is_too_long(self, line: str) -> bool:
        """Whether a line is dropped before it is cut, which would take 60 bytes a character.

        A subword has 16 characters, SentencePiece's default. Four times as many leave room for
        blanks and marks that are not counted, and for longer subwords.
        """
        return len(line) > 64 * self.max_length


class Sieve:
    """Filters that look at blocks of text: as many blocks at once as there are processes.

    The names are keys of `FILTERS`, and applied in the order of that table.

    Raises:
        UserError: If a filter does not know a language.
    """

    def __init__(self, names: Collection[str], langs: tuple[str, str]):
        self._names, self._langs = tuple(names), langs
        self._filters: list[Filter] | None = _make_filters(names, langs)

    def __getstate__(self) -> dict:
        """Without the filters, which each process makes for itself."""
        return self.__dict__ | {"_filters": None}

    def __call__(self, block: Block) -> list[list[bool | int]]:
        """The findings of the filters in each pair, up to the first that leaves the pair out."""
        if self._filters is None:
            self._filters = _make_filters(self._names, self._langs)
        return [self._look_at(*pair) for pair in zip(*block.decode(), strict=True)]

    def _look_at(self, source: str, target: str) -> list[bool | int]:
        found: list[bool | int] = []
        for look in self._filters or ():
            found.append(look(source, target))
            if found[-1] is True:
                break
        return found

    def make_choice(self, dropped: dict[str, int]) -> Callable[[list[bool | int]], bool]:
        """A function of the findings of one pair after the other: whether it is kept.

        `dropped` is filled: pairs left out for each reason, each under the first that holds.
        """
        kinds = _list_kinds(self._names)
        dropped.update({kind.reason: 0 for kind in kinds})
        deciders = [kind.decide() for kind in kinds]

        def is_kept(found: list[bool | int]) -> bool:
            for kind, decide, finding in zip(kinds, deciders, found, strict=False):
                if decide(finding):
                    dropped[kind.reason] += 1
                    return False
            return True

        return is_kept


def _list_kinds(names: Collection[str]) -> list[FilterKind]:
    return [kind for name, kind in FILTERS.items() if name in names]


def _make_filters(names: Collection[str], langs: tuple[str, str]) -> list[Filter]:
    return [kind.make(*langs) for kind in _list_kinds(names)]


def find_kept(
    sizes: tuple[np.ndarray, np.ndarray], limits: Limits
) -> tuple[np.ndarray, dict[str, int]]:
    """Which pairs are within the limits and have no empty side; and how many are not, and why.

    Args:
        sizes: Subwords of both sides of each pair. (P,) each.
        limits: For training pairs.
    """
    short, long = np.minimum(*sizes), np.maximum(*sizes)
    kept = np.ones(len(short), bool)
    dropped = {}
    for reason, found in (
        (f"a side has more than {limits.max_length} subwords", long > limits.max_length),
        ("a side is empty", short == 0),
        (
            f"a side is more than {limits.max_ratio:g} times as long as the other",
            long > limits.max_ratio * short,
        ),
    ):
        if count := int((kept & found).sum()):
            dropped[reason] = count
        kept &= ~found
    return kept, dropped


def _identical(source_lang: str, target_lang: str) -> Filter:
    # Case counts: "hunger" and "Hunger" are a translation.
    return lambda source, target: source.split() == target.split() != []


def _digest(source_lang: str, target_lang: str) -> Filter:
    def digest(source: str, target: str) -> int:
        text = "\n".join(" ".join(side.split()) for side in (source, target))
        # 64 bits: one pair of 40 million is mistaken for another with a chance of 1 in 20,000.
        return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest())

    return digest


def _remember() -> Callable[[bool | int], bool]:
    seen: set[int] = set()

    def came_before(digest: bool | int) -> bool:
        known = len(seen)
        seen.add(digest)
        return len(seen) == known

    return came_before


def _wrong_language(source_lang: str, target_lang: str) -> Filter:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    languages = [base_language(code) for code in (source_lang, target_lang)]
    for code in languages:
        if code not in identifier.labels:
            raise UserError(
                f"--remove-wrong-language: py3langid does not know {code}; it knows "
                + ", ".join(sorted(identifier.labels))
            )

    def is_wrong(text: str, code: str) -> bool:
        # Of names, numbers and single words no language is much more likely than another.
        likely = dict(identifier.rank(text))
        own = max(likely[code], likely[_ALSO.get(code, code)])
        in_kanji = code == "ja" and _HAN.search(text) and not _KANA.search(text)
        return max(likely.values()) > (_KANJI_ODDS if in_kanji else _ODDS) * own

    return lambda *pair: any(map(is_wrong, pair, languages))


# One to four words that come three times in a row.
_AGAIN = re.compile(r"(?<!\S)(\S+(?: \S+){0,3}?)(?: \1){2}(?!\S)")


def _repetitive(source_lang: str, target_lang: str) -> Filter:
    def repeats(text: str) -> bool:
        return _AGAIN.search(" ".join(text.split())) is not None

    # "No, no, no!" is translated so.
    return lambda source, target: repeats(source) != repeats(target)


# By the names of their flags. The quicker ones come first.
FILTERS = {
    "remove_identical": FilterKind("both sides are the same text", _identical),
    "remove_duplicates": FilterKind("the same pair came before", _digest, _remember),
    "remove_repetitive": FilterKind("one side alone repeats itself", _repetitive),
    "remove_wrong_language": FilterKind("a side is in another language", _wrong_language),
}
