"""HTML whose text is translated, a paragraph as a whole, while its markup stays."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from bs4 import Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.kinds import Kinds, is_kept
from resmlp_mt.serving.html.parser import Page
from resmlp_mt.serving.html.runs import Run

# What people read, or hear, of a tag beside its text.
_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label")


def read_documents(documents: list[str]) -> list[str]:
    """The texts of all of them, one after the other; UserError as by `Markup`."""
    return [text for html in documents for text in Markup(html).texts]


def write_documents(documents: list[str], translations: list[list[str]]) -> list[list[str]]:
    """The translations of each document, best first, from those of their texts."""
    answers, rest = [], iter(translations)
    for html in documents:
        markup = Markup(html)
        here = list(islice(rest, len(markup.texts)))
        answers.append([])
        for k in range(max(map(len, here), default=1)):
            each = [ways[min(k, len(ways) - 1)] for ways in here]
            answers[-1].append((Markup(html) if k else markup).put(each))
    return answers


class Markup:
    """An HTML document or a part of one; UserError if it is nested too deeply.

    Attributes:
        texts: To translate, white space collapsed.
    """

    def __init__(self, html: str):
        self.page, self.kinds = Page(html), Kinds()
        # The children of tags, some of them in runs.
        self.rows: list[tuple[Tag, list[PageElement | Run]]] = []
        self._collect(self.page.top)
        self.runs = [part for _, row in self.rows for part in row if isinstance(part, Run)]
        self.attributes = list(_find_attributes(self.page.top))
        self.texts = [run.text for run in self.runs] + [text for *_, text in self.attributes]

    def put(self, translations: Sequence[str]) -> str:
        """The document with these in the place of its texts. It can be called once."""
        rest, changed = iter(translations), set()
        for run, said in zip(self.runs, rest, strict=False):
            if said != run.text:
                run.nodes = run.draw(said)
                changed.add(run)
        for (tag, name, text), said in zip(self.attributes, rest, strict=True):
            tag[name] = tag[name] if said == text else said
        for parent, row in self.rows:
            if any(isinstance(part, Run) and part in changed for part in row):
                parts = (part.nodes if isinstance(part, Run) else [part] for part in row)
                parent.clear()
                parent.extend(list(chain(*parts)))
        return str(self.page)

    def _collect(self, parent: Tag) -> None:
        if parent.name == "option" and "value" not in parent.attrs:
            # A form sends the text of such an option, and must send the same as before.
            own = "".join(child for child in parent.children if self.kinds[child] == "text")
            parent["value"] = " ".join(own.split())
        row, nodes = [], []
        for node in parent.contents:
            if self.kinds[node] in ("block", "wall"):
                row += [*self._collect_run(nodes), node]
                nodes = []
            else:
                nodes.append(node)
            if self.kinds[node] == "block":
                self._collect(node)
        self.rows.append((parent, row + self._collect_run(nodes)))

    def _collect_run(self, nodes: list[PageElement]) -> list[PageElement | Run]:
        words = [node for node in nodes if self.kinds[node] != "text" or node.strip()]
        # An element by itself; and links with nothing between them, which are entries of a menu.
        are_links = all(node.name == "a" and self.kinds[node] == "inline" for node in words)
        is_one = len(words) == 1 and self.kinds[words[0]] == "inline"
        run = None if is_one or are_links else Run(nodes, self.kinds, self.page.free)
        for node in chain(*run.held.values()) if run else words:
            if self.kinds[node] == ("apart" if run else "inline"):
                self._collect(node)
        return [run] if run and run.text else nodes


def _find_attributes(parent: Tag) -> Iterator[tuple[Tag, str, str]]:
    """The tags below another, and their attributes with text that is to be translated."""
    for tag in parent.find_all(True, recursive=False):
        if not is_kept(tag):
            for name in _ATTRIBUTES if tag.name not in ("link", "style") else ():
                if text := " ".join(tag.get(name, "").split()):
                    yield tag, name, text
            yield from _find_attributes(tag)
