"""HTML as a tree and back, by Beautiful Soup with lxml, which reads it as browsers do."""

import re
import warnings
from html import unescape

from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement

from resmlp_mt.errors import UserError
from resmlp_mt.text.rules.literals import WHOLE
from resmlp_mt.text.rules.pictures import FIRST_MARK
from resmlp_mt.text.surrogates import mend_surrogates

_DEEPEST = 100  # deeper documents are made to do harm
# What stands before a document, and is no part of the tree.
_HEAD = re.compile(r"(?is)(\s*+(?:(?:<!--.*?-->|<\?.*?>|<!doctype[^>]*>)\s*+)*+)(.*)")
_DOCUMENT = re.compile(r"(?i)<(?:html|head|body)[\s>]")
# Of ERB and PHP. They stand in attributes too.
_CODE = r"(?s:<%(?:(?!<%|%>).){1,1000}%>|<\?(?:php|=)(?:(?!<\?|\?>).){1,1000}\?>)"
_LITERAL = re.compile(f"{_CODE}|{WHOLE}")
_MARK = re.compile(f'([{FIRST_MARK}-\U0010ffff])(?:="")?')


class Page:
    """An HTML document or a part of one, as a tree.

    Private characters stand in it for placeholders and code that have blanks.

    Attributes:
        top: The root of the tree.
        free: Private characters that it does not have.
    """

    def __init__(self, html: str):
        html = mend_surrogates(html)
        # No tag begins behind the last that ends: browsers would leave out what is there.
        cut = html.rfind(">") + 1
        html = html[:cut] + html[cut:].replace("<", "&lt;")
        used = set(html).union(*map(unescape, set(re.findall(r"&#\w{1,50};?", html))))
        self.free = (chr(i) for i in range(ord(FIRST_MARK), 0x10FFFE) if chr(i) not in used)
        self._literals: dict[str, str] = {}
        self._head, html = _HEAD.match(_LITERAL.sub(self._hold, html)).group(1, 2)
        self._is_whole = bool(_DOCUMENT.match(html))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice
            # In a body the parser puts no text in paragraphs of its own.
            self.top = BeautifulSoup(html if self._is_whole else f"<html><body>{html}", "lxml")
        depths = {id(self.top): 0 if self._is_whole else -2}
        for node in self.top.descendants:
            depths[id(node)] = 1 + depths[id(node.parent)]
            if depths[id(node)] > _DEEPEST:
                raise UserError(f"the HTML is more than {_DEEPEST} tags deep")

    def __str__(self) -> str:
        html = self._head + "".join(map(self._show, self.top.contents))
        return _MARK.sub(lambda mark: self._literals.get(mark[1], mark[0]), html)

    def _show(self, node: PageElement) -> str:
        if not self._is_whole and node.name in ("html", "body"):  # which the parser has added
            return "".join(map(self._show, node.contents))
        return node.decode() if isinstance(node, Tag) else node.output_ready()

    def _hold(self, found: re.Match) -> str:
        """The character that stands for code, and for a placeholder without tags in it."""
        stays = found[0][0] == "<" or (" " in found[0] and not re.search("[<>]", found[0]))
        mark = next(self.free, found[0]) if stays else found[0]
        self._literals[mark] = found[0]
        return mark
