"""Which training pairs are left out: filters of raw text in a table, and limits of lengths."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from resmlp_mt.data.sentences import base_language
from resmlp_mt.errors import UserError

# Takes the two sides of a pair, in the order of the text: whether the pair is left out.
Filter = Callable[[str, str], bool]

# How many times as likely as its own another language must be. At 10, of 4,000 pairs of clean text
# 0.2% of the sides were taken for wrong, and of sides in the pair's other language 96% were found.
_ODDS = 10


@dataclass(frozen=True)
class FilterKind:
    """A filter that can be asked for.

    Attributes:
        reason: What the report says of the pairs that it leaves out.
        make: Makes the filter for a source and a target language.
    """

    reason: str
    make: Callable[[str, str], Filter]


@dataclass(frozen=True)
class Limits:
    """Which training pairs are kept, by their lengths.

    Attributes:
        max_length: Longest sentence in subwords; longer pairs are dropped.
        max_ratio: Largest ratio of the two lengths; pairs beyond are dropped.
    """

    max_length: int
    max_ratio: float


def filter_pairs(
    pairs: Iterable[tuple[str, str]],
    names: Collection[str],
    langs: tuple[str, str],
    dropped: dict[str, int],
) -> Iterator[tuple[str, str]]:
    """Yield the pairs that no filter leaves out.

    Args:
        pairs: Raw text, read once.
        names: Keys of `FILTERS`. They are applied in the order of that table.
        langs: Codes of the two languages.
        dropped: Is filled: pairs left out for each reason, each under the first that holds.

    Raises:
        UserError: If a filter does not know a language.
    """
    chosen = {kind.reason: kind.make(*langs) for name, kind in FILTERS.items() if name in names}
    dropped.update(dict.fromkeys(chosen, 0))
    for pair in pairs:
        for reason, leaves_out in chosen.items():
            if leaves_out(*pair):
                dropped[reason] += 1
                break
        else:
            yield pair


def filter_lengths(
    pairs: Iterable[tuple[list[str], list[str]]], limits: Limits, dropped: dict[str, int]
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the pairs of subwords within the limits, with no side empty; count the others."""
    for pair in pairs:
        short, long = sorted(map(len, pair))
        if long > limits.max_length:
            reason = f"a side has more than {limits.max_length} subwords"
        elif short == 0:
            reason = "a side is empty"
        elif long > limits.max_ratio * short:
            reason = f"a side is more than {limits.max_ratio:g} times as long as the other"
        else:
            yield pair
            continue
        dropped[reason] = dropped.get(reason, 0) + 1


def _identical(source_lang: str, target_lang: str) -> Filter:
    # Case counts: "hunger" and "Hunger" are a translation.
    return lambda source, target: source.split() == target.split() != []


def _duplicates(source_lang: str, target_lang: str) -> Filter:
    seen: set[int] = set()

    def came_before(source: str, target: str) -> bool:
        text = "\n".join(" ".join(side.split()) for side in (source, target))
        # 64 bits: one pair of 40 million is mistaken for another with a chance of 1 in 20,000.
        digest = int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest())
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
        ranked = identifier.rank(text)
        return ranked[0][1] > _ODDS * dict(ranked)[code]

    return lambda *pair: any(map(is_wrong, pair, languages))


# By the names of their flags. The quicker ones come first.
FILTERS = {
    "remove_identical": FilterKind("both sides are the same text", _identical),
    "remove_duplicates": FilterKind("the same pair came before", _duplicates),
    "remove_wrong_language": FilterKind("a side is in another language", _wrong_language),
}
