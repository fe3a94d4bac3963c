"""HTML read as browsers read it, where Beautiful Soup with Python's parser does not.

- It takes the `/` of an empty tag for the end of an earlier one of that name, where that had none:
  what follows would lie within the tag. It also looks through all of these at each end.
- It knows no end tags that may be left out: in `<p>One.<p>Two.` the second would lie in the first.
- It finds references to characters in addresses, as `&copy` in `?a=1&copy=2`. HTML has none in an
  attribute where a name without a `;` goes on, or has a `=` behind it.
"""

import re
import warnings
from html import unescape
from html.entities import html5
from html.parser import attrfind_tolerant, tagfind_tolerant

from bs4 import BeautifulSoup, Doctype, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
from bs4.builder import HTMLParserTreeBuilder
from bs4.builder._htmlparser import BeautifulSoupHTMLParser

# The tags that another one ends where it begins right in them: most of HTML's rules for end tags
# that may be left out.
_PARAGRAPH = frozenset(["p"])
_CELL = _PARAGRAPH | {"td", "th"}
_ROW = _CELL | {"tr"}
_ENDS = {
    **dict.fromkeys(
        """address article aside blockquote center details dialog dir div dl fieldset figcaption
        figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section
        summary table ul""".split(),
        _PARAGRAPH,
    ),
    "li": _PARAGRAPH | {"li"},
    **dict.fromkeys(["dt", "dd"], _PARAGRAPH | {"dt", "dd"}),
    "option": frozenset(["option"]),
    "optgroup": frozenset(["option", "optgroup"]),
    **dict.fromkeys(["td", "th"], _CELL),
    "tr": _ROW,
    **dict.fromkeys(["thead", "tbody", "tfoot"], _ROW | {"thead", "tbody", "tfoot"}),
}
_REFERENCE = re.compile(r"&([a-z][a-z0-9]*)(;?)(=?)", re.IGNORECASE)


def parse_html(html: str) -> BeautifulSoup:
    """The tree of a document or of a part of one.

    Raises:
        ParserRejectedMarkup, ValueError: As Beautiful Soup raises them.
    """
    with warnings.catch_warnings():
        for advice in (MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning):
            warnings.simplefilter("ignore", advice)
        return BeautifulSoup(html, builder=_Builder(), element_classes={Doctype: _Doctype})


class _Doctype(Doctype):
    """One without a line end of its own: that of the document is kept."""

    SUFFIX = ">"


class _Builder(HTMLParserTreeBuilder):
    def feed(self, markup: str) -> None:
        super().feed(markup, _Parser)


class _Parser(BeautifulSoupHTMLParser):
    def handle_starttag(self, tag, attrs, handle_empty_element=True) -> None:
        raw = self.get_starttag_text()
        if "&" in raw:
            attrs = _read_attributes(raw)
        while self.soup.currentTag.name in _ENDS.get(tag, ()):
            self.soup.handle_endtag(self.soup.currentTag.name)
        super().handle_starttag(tag, attrs, handle_empty_element)
        self.already_closed_empty_element.clear()


def _read_attributes(tag: str) -> list[tuple[str, str]]:
    """The attributes of a tag as it was typed, found as Python's parser finds them."""
    found, place = [], tagfind_tolerant.match(tag, 1).end()
    while attribute := attrfind_tolerant.match(tag, place):
        name, value = attribute[1], attribute[3] or ""
        if value[:1] in ("'", '"') and value[:1] == value[-1:]:
            value = value[1:-1]
        found.append((name.lower(), unescape(_REFERENCE.sub(_mark_text, value))))
        place = attribute.end()
    return found


def _mark_text(found: re.Match) -> str:
    """What looks like a reference, with its & escaped where it is none."""
    name, end, assigned = found.groups()
    known = name + end in html5 and (end or not assigned)
    return found[0] if known else f"&amp;{found[0][1:]}"
