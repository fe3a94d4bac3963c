"""Digits and short identifiers of a text: its translation must have them all."""

import re
from collections import Counter
from collections.abc import Callable

from resmlp_mt.text.rules.literals import SHORT
from resmlp_mt.text.segments import About, Traced

_RUN = re.compile(r"\d+")
# Times of day, which languages count to 12 or to 24.
_HALF_DAY = re.compile(r"(?<![\d.:])(\d{1,2})(?:[:.](\d\d))?\s?([aApP])\.?\s?[mM]\b\.?")
_FULL_HOUR = re.compile(r"(?<=\d):00\b(?!:)|(?<=\d)[.]00(?=\s(?:Uhr|h)\b)")
_EARLY = re.compile(r"(?<![\d.:])0(?=\d[:.]\d\d\b)")


def read(text: Traced, about: About) -> tuple[Traced, Counter[str] | None]:
    """Count the digits and short identifiers that a translation must have."""
    if not _RUN.search(text.text):
        return text, None
    return text, _count(text.text) + Counter(SHORT.findall(text.text))


def write(said: Traced, memo: Counter[str], about: About, weigh: Callable) -> Traced | None:
    """The translation, if it has all that were counted. At the first try none may be doubled."""
    words = {w: often for w, often in memo.items() if not w.isdigit() and w in said.text}
    found = _count(said.text) + Counter(words)
    doubled = not about.tries and any(found[word] > often for word, often in memo.items())
    return None if memo - found or doubled else said


def _count(text: str) -> Counter[str]:
    """How often there is each run of digits. 7:30 pm counts as 19:30, and 9:00 as 9."""
    text = _HALF_DAY.sub(_read_time, text)
    return Counter(_RUN.findall(_EARLY.sub("", _FULL_HOUR.sub("", text))))


def _read_time(match: re.Match) -> str:
    hour = int(match[1]) % 12 + 12 * (match[3] in "pP")
    return f"{hour}:{match[2]}" if match[2] else str(hour)
