"""Rules for text, a file each.

A rule takes something off a text that a model cannot translate well, and puts it back:

    read(text, about) -> (text, memo), with the memo None where there is nothing to take off;
        or None, if the text stays as it is
    write(translation, memo, about, weigh) -> translation, or None if it lost something

Texts are `Traced`, so that words of the source and of the translation can be compared. `weigh`
gives the shares of the source's words in those of a translation.
"""

from resmlp_mt.text.rules import (
    capitals,
    digits,
    edges,
    literals,
    pictures,
    spans,
    stops,
    terms,
    unreadable,
)

# Rules that put names in the place of words that stay as they are.
NAMING = (literals, unreadable, pictures)

# In the order in which they read. They write in the opposite one.
RULES = (edges, spans, digits, terms, *NAMING, capitals, stops)
