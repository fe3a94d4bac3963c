"""Numbers: how languages write long ones, and how many a translation lacks."""

import re
from collections.abc import Iterator

from resmlp_mt.text.punctuation import Place
from resmlp_mt.text.sentences import base_language

# Of groups and of decimals, by Unicode's CLDR. Others put blanks between groups, or make them of
# two digits.
_SEPARATORS = dict.fromkeys("en he ja km ko ms my sw th zh".split(), ",.") | dict.fromkeys(
    "az bs ca da de el es eu hr id is it lo mk nl pt ro sl sr tr vi".split(), ".,"
)

_RUN = re.compile(r"\d+")
_MINUS = re.compile(r"(?<![^\s(])[-−](?=\d)")


def find_grouped(text: str, source: str, target: str) -> Iterator[tuple[Place, str]]:
    """Yield the places of numbers in groups of digits, and how another language writes each.

    There are none where the way of either language is not known. No IP address is one.

    Args:
        text: Raw text.
        source, target: Codes of the languages.

    >>> list(find_grouped("It has 12,500.5 m².", "en", "de"))
    [((7, 15), '12.500,5')]
    """
    written = _SEPARATORS.get(base_language(source))
    writes = _SEPARATORS.get(base_language(target))
    if not (written and writes):
        return
    group, decimal = map(re.escape, written)
    address = rf"[12]\d\d(?:{group}[12]\d\d){{3}}(?!{group})"
    number = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+(?:{decimal}\d+)?(?!\w|[.,]\d)"
    table = str.maketrans(written, writes)
    for match in re.finditer(rf"(?<![\w.,])(?!{address}){number}", text, re.ASCII):
        yield match.span(), match[0].translate(table)


def count_lost_numbers(translation: str, source: str) -> int:
    """How many runs of digits a translation has less than its source, and how many signs less.

    Which digits they are does not count, since 7:30 pm may become 19:30.

    >>> count_lost_numbers("Es sind 5 °C.", "It is -5 °C."), count_lost_numbers("Nie.", "In 1.6.")
    (1, 2)
    """
    return sum(
        max(0, len(kind.findall(source)) - len(kind.findall(translation)))
        for kind in (_RUN, _MINUS)
    )
