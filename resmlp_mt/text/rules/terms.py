"""Terms of a glossary, which have a translation of their own."""

from collections.abc import Callable
from dataclasses import dataclass

from resmlp_mt.text.rules.capitals import is_in_capitals, upper
from resmlp_mt.text.rules.names import Names, read_names, write_names
from resmlp_mt.text.segments import About, Traced, Wanted


@dataclass(frozen=True)
class Terms:
    """Terms that a translation must hold, names of them, and those that the search must hold."""

    wanted: tuple[Wanted, ...]
    names: Names | None
    held: tuple[Wanted, ...]


def read(text: Traced, about: About) -> tuple[Traced, Terms | None]:
    """Put names in the place of terms. Those without a place, or retried, the search must hold."""
    raised = is_in_capitals(text.text)
    found = about.find_terms(text.text, raised) if about.find_terms else ()
    if about.tries > 1:
        found = [(wanted, place) for wanted, place in found if wanted.must]
    if not found:
        return text, None
    must = tuple(wanted for wanted, _ in found if wanted.must)
    fixed, held = [], []
    for wanted, place in found:
        if place and not (about.tries and wanted.must):
            word = upper(wanted.text, about.languages[1]) if raised else wanted.text
            fixed.append((place, word))
        elif wanted.must:
            held.append(wanted)
    said, names = read_names(text, fixed, about)
    if fixed and (names is None or names.often.total() < len(fixed)):
        return text, Terms(must, None, must)
    return said, Terms(must, names, tuple(held))


def write(said: Traced, memo: Terms, about: About, weigh: Callable) -> Traced | None:
    """Put the translations of terms in the place of their names."""
    return write_names(said, memo.names, about, weigh) if memo.names else said
