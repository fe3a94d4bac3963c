"""Names of programs, parts and orders: snake_case, KB5034441, us-east-1, m²."""

import re
from collections.abc import Iterator

from resmlp_mt.text.about import About
from resmlp_mt.text.rules.names import NAME, Fixed

# Raised and lowered characters, signs of marks and fractions. Subwords write most plainly: 102 for
# 10², which is another number.
_MARKED = "\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u2070-\u209c\u2120\u2122\u2150-\u215f\u2189"
# Letters and digits in one. A model knows short ones, as A4 and mp3. "20th", "100km" and "1990s"
# are words; so are "5-year-old" and German "Formel-1-Fahrer".
_MIXED = r"[A-Za-z]+\d[A-Za-z0-9]*|\d+[A-Za-z]+\d[A-Za-z0-9]*"
_WHOLE = r"(?:[._-][A-Za-z0-9]+)*(?![\w@]|[._-][A-Za-z0-9])"
_LONG = re.compile(
    r"\b[A-Za-z]\w*\(\)"
    r"|\b(?=[A-Za-z][A-Za-z0-9]*_)\w+(?<!_)\b"
    r"|\b[a-z]{2,}(?:[A-Z][a-z0-9]+)+\b"
    r"|(?<![\w/])\d{1,4}[-/]\d{1,2}[-/]\d{1,4}(?:T[\d:.]+Z?)?(?![\w/-])"  # a date
    r"|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4,12})+\b"  # of Unicode's UUIDs
    r"|(?<![\w-])[a-z]{2,}+(?=[a-z0-9-]*\d)(?:(?:-[a-z0-9]+){2,}|-[a-z]+\d[a-z0-9]*)\b"
    rf"|(?<![\w.-])(?=[\w.-]{{5}})(?:{_MIXED}){_WHOLE}"
    rf"|(?<![\w\u2044{_MARKED}])[\w\u2044]*[{_MARKED}][\w\u2044{_MARKED}]*"
)
_SHORT = re.compile(rf"(?<![\w.-])(?!{NAME}\b)(?:{_MIXED})(?![\w-])")
# What each of them has.
_SIGN = re.compile(rf"[\d_{_MARKED}\u2044]|\(\)|[a-z][A-Z]")


def find_short(text: str) -> list[str]:
    """Those that a model mostly knows."""
    return _SHORT.findall(text)


def find_identifiers(text: str, about: About) -> Iterator[Fixed]:
    """Yield the others; all, where the text is read with care."""
    if _SIGN.search(text):
        for kind in (_LONG, _SHORT) if about.careful else (_LONG,):
            yield from ((match.span(), match[0]) for match in kind.finditer(text))
