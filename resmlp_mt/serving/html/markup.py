"""HTML whose text is translated while its markup stays, by Beautiful Soup and alignments.

A paragraph is translated as a whole, without the tags within it. Each word of the translation then
gets the tags of the word that it was made from, as the attention says: so a tag moves with its
words. It stays in its sentence, where sentences are translated apart.
"""

import math
from collections.abc import Iterator, Sequence

from bs4 import NavigableString, ParserRejectedMarkup, Tag
from bs4.element import PageElement

from resmlp_mt.serving.html.parser import parse_html
from resmlp_mt.serving.html.runs import Kinds, Run, is_kept
from resmlp_mt.serving.html.tagging import Tagger, Translated

# What people read, or hear, of a tag beside its text.
_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label")
# Deeper documents are made to do harm.
_DEEPEST = 100
# So are those with more beginnings that have no end: the parser looks for each to the last letter.
_MOST_OPEN = 1000
_ENDS = (("<!--", "-->"), ("<![", "]]>"), ("<![", "]>"))


class Markup:
    """An HTML document or a part of one.

    Attributes:
        texts: What there is to translate, white space collapsed.

    Args:
        html: Its source.

    Raises:
        ValueError: If it is nested too deeply, too much in it has no end, or it cannot be parsed.
    """

    def __init__(self, html: str):
        # No tag begins behind the last that ends. The parser would look for the end of each.
        cut = html.rfind(">") + 1
        html = html[:cut] + html[cut:].replace("<", "&lt;")
        for begin, end in _ENDS:
            if html.count(begin, html.rfind(end) + 1) > _MOST_OPEN:
                raise ValueError(f"the HTML has more than {_MOST_OPEN:,} {begin} without {end}")
        try:
            self.soup = parse_html(html)
        except ParserRejectedMarkup:
            raise ValueError("the HTML has a <! that the parser does not know") from None
        except ValueError:  # Python reads no longer ones
            raise ValueError("the HTML has a &# with thousands of digits") from None
        depths = {id(self.soup): 0}
        for node in self.soup.descendants:
            depths[id(node)] = 1 + depths[id(node.parent)]
            if depths[id(node)] > _DEEPEST:
                raise ValueError(f"the HTML is more than {_DEEPEST} tags deep")
        self.kinds, self.runs = Kinds(), []
        self._collect(self.soup)
        self.attributes = list(_find_attributes(self.soup))
        self.texts = [run.text for run in self.runs]
        self.texts += [" ".join(tag[name].split()) for tag, name in self.attributes]

    def put(self, translations: Sequence[Translated], room: float = math.inf) -> str:
        """The document with these in the place of its texts. It can be called once.

        Args:
            translations: One of each text.
            room: Characters that the tags of words may take. Where words change their places, one
                tag around them becomes several.

        Raises:
            AnswerTooLarge: If they take more.
        """
        count, tagger = len(self.runs), Tagger(self.soup, room)
        # Attributes first, before the tags are copied.
        of_attributes = zip(self.texts[count:], translations[count:], strict=True)
        for (tag, name), (text, translated) in zip(self.attributes, of_attributes, strict=True):
            if translated.text != text:
                tag[name] = translated.text
        for run, translated in zip(self.runs, translations[:count], strict=True):
            # Nothing was translated, as of a zero-width blank or of a number with hard blanks.
            if not translated.parts or translated.text == run.text:
                continue
            run.cut([source for source, _ in translated.parts])
            before = run.raw[: len(run.raw) - len(run.raw.lstrip())]
            place = NavigableString(before)
            run.nodes[0].insert_before(place)
            for node in run.nodes:
                node.extract()
            after = NavigableString(run.raw[run.end :])
            place.insert_after(*tagger.render(run, translated), after)
        return str(self.soup)

    def _collect(self, parent: Tag) -> None:
        if parent.name == "option" and "value" not in parent.attrs:
            # A form sends the text of such an option, and must send the same as before.
            own = [str(child) for child in parent.children if self.kinds[child] == "text"]
            parent["value"] = " ".join("".join(own).split())
        waiting, nodes = [*parent.children, None], []
        for node in waiting:
            kind = "wall" if node is None else self.kinds[node]
            if kind not in ("block", "wall"):
                nodes.append(node)
                continue
            self._collect_run(nodes)
            nodes = []
            if kind == "block":
                self._collect(node)

    def _collect_run(self, nodes: list[PageElement]) -> None:
        run = Run(nodes, self.kinds)
        if run.text:
            self.runs.append(run)
        for atom in [atom for _, atom, _ in run.atoms] + [atom for atom, _ in run.marked.values()]:
            if self.kinds[atom] == "apart":
                self._collect(atom)


def _find_attributes(parent: Tag) -> Iterator[tuple[Tag, str]]:
    """The tags below another, and their attributes, that are to be translated."""
    for tag in parent.find_all(True, recursive=False):
        if not is_kept(tag):
            if tag.name not in ("link", "style"):  # whose title is a name
                yield from ((tag, name) for name in _ATTRIBUTES if tag.get(name, "").strip())
            yield from _find_attributes(tag)
