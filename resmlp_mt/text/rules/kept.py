"""What is the same in all languages, and long numbers: they are read by names."""

from itertools import chain

from resmlp_mt.text.about import About
from resmlp_mt.text.rules.identifiers import find_identifiers
from resmlp_mt.text.rules.literals import find_literals
from resmlp_mt.text.rules.names import Names, read_names, write_names
from resmlp_mt.text.rules.numbers import find_numbers
from resmlp_mt.text.traced import Traced


def read(text: Traced, about: About) -> tuple[Traced, Names | None]:
    """Put names in the place of literals, identifiers and numbers."""
    kinds = (find(text.text, about) for find in (find_literals, find_identifiers, find_numbers))
    return read_names(text, chain(*kinds), about)


write = write_names
