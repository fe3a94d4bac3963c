"""HTML whose text is translated while its markup stays.

A paragraph is translated as a whole. Each tag within it is then put around the words that translate
its own.
"""

from collections.abc import Iterator, Sequence

from bs4 import Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.kinds import Kinds, is_kept
from resmlp_mt.serving.html.parser import Page
from resmlp_mt.serving.html.runs import Run

# What people read, or hear, of a tag beside its text.
_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label")


class Markup:
    """An HTML document or a part of one.

    Attributes:
        texts: What there is to translate, white space collapsed.

    Args:
        html: Its source.

    Raises:
        ValueError: If it is nested too deeply.
    """

    def __init__(self, html: str):
        self.page, self.kinds = Page(html), Kinds()
        # The children of tags, some of them in runs.
        self.layouts: list[tuple[Tag, list[PageElement | Run]]] = []
        self._collect(self.page.top)
        self.runs = [part for _, row in self.layouts for part in row if isinstance(part, Run)]
        self.attributes = list(_find_attributes(self.page.top))
        self.texts = [run.text for run in self.runs]
        self.texts += [" ".join(tag[name].split()) for tag, name in self.attributes]

    def put(self, translations: Sequence[str]) -> str:
        """The document with these in the place of its texts. It can be called once."""
        said = dict(zip(self.runs, translations, strict=False))
        of_attributes = zip(self.attributes, translations[len(self.runs) :], strict=True)
        for (tag, name), translation in of_attributes:
            if translation != " ".join(tag[name].split()):
                tag[name] = translation
        for parent, row in self.layouts:
            if all(said.get(part, part.text) == part.text for part in row if type(part) is Run):
                continue
            nodes = []
            for part in row:
                if not isinstance(part, Run):
                    nodes.append(part)
                else:
                    nodes += part.nodes if said[part] == part.text else part.draw(said[part])
            parent.clear()
            parent.extend(nodes)
        return str(self.page)

    def _collect(self, parent: Tag) -> None:
        if parent.name == "option" and "value" not in parent.attrs:
            # A form sends the text of such an option, and must send the same as before.
            own = [str(child) for child in parent.children if self.kinds[child] == "text"]
            parent["value"] = " ".join("".join(own).split())
        row: list[PageElement | Run] = []
        nodes: list[PageElement] = []
        for node in [*parent.children, None]:
            kind = "wall" if node is None else self.kinds[node]
            if kind not in ("block", "wall"):
                nodes.append(node)
                continue
            row += self._collect_run(nodes)
            nodes = []
            if node is not None:
                row.append(node)
            if kind == "block":
                self._collect(node)
        self.layouts.append((parent, row))

    def _collect_run(self, nodes: list[PageElement]) -> list[PageElement | Run]:
        words = [node for node in nodes if self.kinds[node] != "text" or node.strip()]
        inline = all(self.kinds[node] == "inline" for node in words)
        # An element by itself; and links with nothing between them, which are entries of a menu.
        if inline and (len(words) == 1 or all(node.name == "a" for node in words)):
            for node in words:
                self._collect(node)
            return nodes
        run = Run(nodes, self.kinds, self.page.free) if words else None
        for node in nodes:
            self._collect_apart(node)
        return [run] if run and run.text else nodes

    def _collect_apart(self, node: PageElement) -> None:
        if self.kinds[node] == "apart":
            self._collect(node)
        elif self.kinds[node] == "inline":
            for child in node.children:
                self._collect_apart(child)


def _find_attributes(parent: Tag) -> Iterator[tuple[Tag, str]]:
    """The tags below another, and their attributes, that are to be translated."""
    for tag in parent.find_all(True, recursive=False):
        if not is_kept(tag):
            if tag.name not in ("link", "style"):  # whose title is a name
                yield from ((tag, name) for name in _ATTRIBUTES if tag.get(name, "").strip())
            yield from _find_attributes(tag)
