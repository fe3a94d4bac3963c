"""Long numbers, which stay or are written as the target language does."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import regex

from resmlp_mt.text.rules.names import Fixed
from resmlp_mt.text.segments import About, Traced
from resmlp_mt.text.sentences import base_language

_DIGIT = re.compile(r"\d")
# Groups of digits and more: accounts, books, telephones, "12 000 000".
_LONG = re.compile(
    r"(?<![\w.,+-])(?:"
    r"[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
    r"|[+(0]\(?\d+\)?(?:[ /-]{1,3}\(?\d+\)?)+"
    r"|\d{1,3}(?:[ \xa0\u2009\u202f]\d{3})+(?!\d)"
    r"|\d+(?:[ /-]\d+){2,}(?:-?[xX])?"
    r"|\d{5,}"
    r")(?!\w|[.,]\d)"
)
_ANY = re.compile(r"\d+(?:[.,:/]\d+)*")
# A number that stands alone among words. Beside operators it is an argument or a formula.
_ALONE = (
    r"(?=[0-9])(?<=(?:^|[\s\"'«»„“‚‘>])[-−+~≈$€£¥]?)"
    r"(?<!(?:[=+*/<×÷^\\&?|]|(?<!\S)--?[A-Za-z]\S{{0,40}})\s{{0,9}})"
    r"(?P<whole>{whole})(?:{decimal}(?P<rest>[0-9]+))?"
    r"(?=[.,;:!?…%‰°€$£¥\"'«»“”’*_]*(?:\s|$|[-–]\w))(?!\s*[=+*/<>×÷^\\&])"
)


def rewrite(text: str, about: About) -> str:
    """A text with each long number as the target language writes it: 12,500.5 as 12.500,5."""
    found = _find_grouped(text, *about.languages) if _DIGIT.search(text) else ()
    return Traced.of(text).replace(found).text


def find_numbers(text: str, about: About) -> Iterator[Fixed]:
    """Yield long numbers, and what stands for them in a translation; with care, all numbers."""
    if _DIGIT.search(text):
        yield from _find_grouped(text, *about.languages)
        for kind in (_LONG, _ANY) if about.careful else (_LONG,):
            yield from ((match.span(), match[0]) for match in kind.finditer(text))


def _find_grouped(text: str, source: str, target: str) -> Iterator[Fixed]:
    """Yield the places of long numbers that stand alone among words, and the target's spelling.

    There are none where either language's spelling is not known. IP addresses are left out.
    """
    pattern, locale = _pattern(base_language(source)), _locale(base_language(target))
    for match in pattern.finditer(text) if pattern and locale else ():
        from babel.numbers import format_decimal  # slow to import, as in _locale

        whole = format_decimal(int(re.sub(r"\D", "", match["whole"])), locale=locale)
        rest = locale.number_symbols["latn"]["decimal"] + match["rest"] if match["rest"] else ""
        yield match.span(), whole + rest


@cache
def _pattern(language: str) -> regex.Pattern | None:
    """Finds numbers in groups of digits, and those that another language would take for such."""
    if (locale := _locale(language)) is None:
        return None
    group, decimal = (locale.number_symbols["latn"][kind] for kind in ("group", "decimal"))
    group = "[ \xa0\u2009\u202f]" if group.isspace() else re.escape(group)
    decimal = re.escape(decimal)
    address = rf"(?!([12][0-9]{{2}}{group}){{3}}[12][0-9]{{2}}(?!{group}))"
    whole = rf"{address}[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+"
    return regex.compile(
        _ALONE.format(whole=rf"{whole}|[0-9]+(?={decimal}[0-9]{{3}}(?![0-9]))", decimal=decimal)
    )


@cache
def _locale(language: str) -> Any:
    """Babel's `Locale`: how a language writes numbers, by Unicode's CLDR; None if unknown."""
    from babel import Locale, localedata  # they take as long to import as all else that translates

    locale = Locale.parse(language) if localedata.exists(language) else None
    return locale if locale and "latn" in locale.number_symbols else None
