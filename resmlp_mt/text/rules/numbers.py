"""Long numbers, which stay or are written as the target language does."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache

from resmlp_mt.text.about import About
from resmlp_mt.text.punctuation import Place, leave_out
from resmlp_mt.text.rules.identifiers import find_identifiers
from resmlp_mt.text.rules.literals import find_literals
from resmlp_mt.text.rules.names import Fixed, Names, read_names, write_names
from resmlp_mt.text.sentences import base_language
from resmlp_mt.text.traced import Traced

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
    for (start, end), number in reversed(list(_find_grouped(text, *about.languages))):
        text = text[:start] + number + text[end:]
    return text


def read(text: Traced, about: About) -> tuple[Traced, Names | None]:
    """Put names in the place of long numbers; of all, where the text is read with care."""
    return read_names(text, _find(text.text, about), about)


write = write_names


def _find(text: str, about: About) -> list[Fixed]:
    if not any(map(str.isdigit, text)):
        return []
    known = [*find_literals(text), *find_identifiers(text, about)]
    grouped = dict(_find_grouped(text, *about.languages))
    found = [(place, grouped[place]) for place in leave_out(grouped, known)]
    for kind in (_LONG, _ANY) if about.careful else (_LONG,):
        known += [place for place, _ in found]
        places = leave_out((match.span() for match in kind.finditer(text)), known)
        found += [(place, text[slice(*place)]) for place in places]
    return sorted(found)


def _find_grouped(text: str, source: str, target: str) -> Iterator[tuple[Place, str]]:
    """Yield the places of long numbers that stand alone among words, each in the other language.

    There are none where the way of either language is not known. No IP address is one.
    """
    pattern = _pattern(base_language(source))
    for match in pattern.finditer(text) if pattern else ():
        start, end = match.span()
        before, behind = text[max(0, start - 40) : start], text[end : end + 40]
        alone = _BEFORE.search(before) and _BEHIND.match(behind)
        if not alone or _OPERATOR_BEFORE.search(before) or _OPERATOR_BEHIND.match(behind):
            continue
        digits, rest = re.sub(r"\D", "", match["whole"]), match["rest"] or ""
        if written := _write(digits, rest, base_language(target)):
            yield match.span(), written


@cache
def _pattern(language: str) -> re.Pattern | None:
    """Finds numbers in groups of digits, and those that another language would take for such."""
    if (marks := _marks(language)) is None:
        return None
    group, decimal = map(re.escape, marks)
    group = "[ \xa0\u2009\u202f]" if marks[0].isspace() else group
    address = rf"[12]\d\d(?:{group}[12]\d\d){{3}}(?!{group})"
    whole = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+(?={decimal}\d{{3}}(?!\d))"
    number = rf"(?P<whole>{whole})(?:{decimal}(?P<rest>\d+))?"
    return re.compile(rf"(?<![\w.,])(?!{address}){number}(?!\w|[.,]\d)", re.ASCII)


@cache
def _marks(language: str) -> tuple[str, str] | None:
    """What a language writes between groups of digits and before decimals, by Unicode's CLDR."""
    try:
        from babel import Locale, UnknownLocaleError
    except ModuleNotFoundError:  # a small container may do without
        return None
    try:
        symbols = Locale.parse(language).number_symbols["latn"]
    except (UnknownLocaleError, ValueError, KeyError):
        return None
    return symbols["group"], symbols["decimal"]


def _write(digits: str, rest: str, language: str) -> str | None:
    """A number as a language writes it."""
    if _marks(language) is None:
        return None
    from babel import Locale
    from babel.numbers import format_decimal

    groups = Locale.parse(language).decimal_formats[None].pattern.partition(".")[0]
    pattern = groups + ("." + "0" * len(rest) if rest else "")
    return format_decimal(Decimal(f"{digits}.{rest or 0}"), pattern, locale=language)
