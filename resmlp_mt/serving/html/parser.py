"""HTML as a tree and back, by Beautiful Soup with lxml, which reads it as browsers do."""

import re
import warnings
from collections.abc import Iterator
from html import unescape

from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning

from resmlp_mt.text.rules.literals import find_whole
from resmlp_mt.text.rules.pictures import FIRST_MARK
from resmlp_mt.text.surrogates import mend_surrogates

# Deeper documents are made to do harm.
_DEEPEST = 100
# What stands before a document, and is no part of the tree.
_HEAD = re.compile(r"(?is)\s*+(?:(?:<!--.*?-->|<\?.*?>|<!doctype[^>]*>)\s*+)*+")
_DOCUMENT = re.compile(r"(?i)<(?:html|head|body)[\s>]")
# Of ERB and PHP. They stand in attributes too.
_CODE = re.compile(r"<%(?:(?!<%|%>).){1,1000}%>|<\?(?:php|=)(?:(?!<\?|\?>).){1,1000}\?>", re.DOTALL)
_LAST_MARK = 0x10FFFD
_MARK = re.compile(f'([{FIRST_MARK}-\U0010ffff])(?:="")?')


class Page:
    """An HTML document or a part of one, as a tree.

    Attributes:
        top: The tag that holds all of it.
        literals: Placeholders and code that have blanks in them, by the private characters that
            stand for them in the tree.
        free: Further private characters that it does not have.

    Args:
        html: Its source.

    Raises:
        ValueError: If it is nested too deeply.
    """

    def __init__(self, html: str):
        html = mend_surrogates(html)
        # No tag begins behind the last that ends: browsers would leave out what is there.
        cut = html.rfind(">") + 1
        html = html[:cut] + html[cut:].replace("<", "&lt;")
        used = set(unescape(html))
        marks = map(chr, range(ord(FIRST_MARK), _LAST_MARK))
        self.free = (mark for mark in marks if mark not in used)
        self.literals: dict[str, str] = {}
        html = self._take_literals(html)
        self._head = _HEAD.match(html)[0]
        html = html[len(self._head) :]
        self._is_whole = bool(_DOCUMENT.match(html))
        name = "x-part"
        while name in html:
            name += "-"
        with warnings.catch_warnings():
            for advice in (MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning):
                warnings.simplefilter("ignore", advice)
            # Within a tag that it does not know the parser adds none of its own.
            whole = html if self._is_whole else f"<{name}>{html}</{name}>"
            soup = BeautifulSoup(whole, "lxml")
        self.top = soup if self._is_whole else soup.find(name)
        depths = {id(self.top): 0}
        for node in self.top.descendants:
            depths[id(node)] = 1 + depths[id(node.parent)]
            if depths[id(node)] > _DEEPEST:
                raise ValueError(f"the HTML is more than {_DEEPEST} tags deep")

    def __str__(self) -> str:
        html = self._head + self.top.decode_contents()
        return _MARK.sub(lambda mark: self.literals.get(mark[1], mark[0]), html)

    def _take_literals(self, html: str) -> str:
        texts, done = [], 0
        for start, end in _find_literals(html):
            mark = next(self.free, None) if start >= done else None
            if mark:
                self.literals[mark] = html[start:end]
                texts += [html[done:start], mark]
                done = end
        return "".join([*texts, html[done:]])


def _find_literals(html: str) -> Iterator[tuple[int, int]]:
    """The places of code, and of what has blanks and no tags in it, in order."""
    whole = [place for place in find_whole(html) if not re.search("[<>]", html[slice(*place)])]
    return sorted([*whole, *(match.span() for match in _CODE.finditer(html))])
