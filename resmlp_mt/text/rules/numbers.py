"""Long numbers, which stay or are written as the target language does."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from resmlp_mt.text.about import About
from resmlp_mt.text.rules.names import Fixed
from resmlp_mt.text.sentences import base_language
from resmlp_mt.text.traced import Traced

if TYPE_CHECKING:
    from babel import Locale

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
# Around a number that stands alone among words. Beside operators it is an argument or a formula.
_BEFORE = re.compile(r"(?:^|(?<=[\s\"'«»„“‚‘>]))[-−+~≈$€£¥]?$")
_BEHIND = re.compile(r"[.,;:!?…%‰°€$£¥\"'«»“”’*_]*(?:\s|$|[-–]\w)")
_OPERATOR_BEFORE = re.compile(r"(?:[=+*/<×÷^\\&?|]|(?<!\S)--?[A-Za-z]\S*)\s*$")
_OPERATOR_BEHIND = re.compile(r"\s*[=+*/<>×÷^\\&]")


def rewrite(text: str, about: About) -> str:
    """A text with each long number as the target language writes it.

    >>> from types import SimpleNamespace
    >>> rewrite("It has 12,500.5 m².", SimpleNamespace(languages=("en", "de")))
    'It has 12.500,5 m².'
    """
    found = _find_grouped(text, *about.languages) if _DIGIT.search(text) else ()
    return Traced.of(text).replace(found).text


def find_numbers(text: str, about: About) -> Iterator[Fixed]:
    """Yield long numbers, and what stands for them in a translation; with care, all numbers."""
    if _DIGIT.search(text):
        yield from _find_grouped(text, *about.languages)
        for kind in (_LONG, _ANY) if about.careful else (_LONG,):
            yield from ((match.span(), match[0]) for match in kind.finditer(text))


def _find_grouped(text: str, source: str, target: str) -> Iterator[Fixed]:
    """Yield long numbers that stand alone among words, with their places, as the target has them.

    There are none where the way of either language is not known. No IP address is one.
    """
    pattern, locale = _pattern(base_language(source)), _locale(base_language(target))
    for match in pattern.finditer(text) if pattern and locale else ():
        start, end = match.span()
        before, behind = text[max(0, start - 40) : start], text[end : end + 40]
        alone = _BEFORE.search(before) and _BEHIND.match(behind)
        if alone and not (_OPERATOR_BEFORE.search(before) or _OPERATOR_BEHIND.match(behind)):
            from babel.numbers import format_decimal  # here, as below

            whole = format_decimal(int(re.sub(r"\D", "", match["whole"])), locale=locale)
            rest = locale.number_symbols["latn"]["decimal"] + match["rest"] if match["rest"] else ""
            yield (start, end), whole + rest


@cache
def _pattern(language: str) -> re.Pattern | None:
    """Finds numbers in groups of digits, and those that another language would take for such."""
    if (locale := _locale(language)) is None:
        return None
    group, decimal = (locale.number_symbols["latn"][kind] for kind in ("group", "decimal"))
    group = "[ \xa0\u2009\u202f]" if group.isspace() else re.escape(group)
    decimal = re.escape(decimal)
    address = rf"[12]\d\d(?:{group}[12]\d\d){{3}}(?!{group})"
    whole = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+(?={decimal}\d{{3}}(?!\d))"
    number = rf"(?P<whole>{whole})(?:{decimal}(?P<rest>\d+))?"
    return re.compile(rf"(?<![\w.,])(?!{address}){number}(?!\w|[.,]\d)", re.ASCII)


@cache
def _locale(language: str) -> "Locale | None":
    """How a language writes numbers, by Unicode's CLDR; None if that does not know."""
    try:  # Babel takes as long to import as all else that translates, and may be left out
        from babel import Locale, UnknownLocaleError
    except ModuleNotFoundError:
        return None
    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        return None
    return locale if "latn" in locale.number_symbols else None
