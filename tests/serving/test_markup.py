"""HTML that is read as texts and written from their translations."""

import random
import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup, Comment
from hypothesis import given, settings
from hypothesis import strategies as st

from resmlp_mt.serving.html.markup import Markup, read_documents, write_documents
from resmlp_mt.serving.html.parser import Page

KEPT = [
    "<code>1 &lt; 2</code>", "<kbd translate='no'><i>3</i></kbd>", "<img src='4'/>", "<!-- 5 -->",
    "<i class='6'></i>", "<pre>7 <b>8</b>\n</pre>", "<p translate='no'>9</p>", "&lt;g0&gt;",
    "<script>if (1 < 2) '</b>'</script>", " {{ 10 | 11 }} ", "<%= 12 > 13 %>",
    "<a href='{{ 1 < 2 }}'>é</a>", "\U00100000", "\xa0", " {14, number} ", "fox<sup>16</sup>",
    "h<sub>2</sub>o", "<br/>",
]  # fmt: skip
pieces = st.sampled_from(["dog", "cat,", " ", " a bird ", "&amp;", "ß.", " (fish)", *KEPT])
names = st.sampled_from(["b", "i", "a", "section", "div", "span", "button", "li"])
trees = st.recursive(
    pieces | st.text(max_size=5).map(lambda text: re.sub(r"[0-9<&{}%`\s\0\r]", "", text)),
    lambda inner: st.builds(
        "<{0} id='{1}'>{2}</{0}>".format,
        names,
        st.integers(),
        st.lists(inner, max_size=5).map("".join),
    ),
    max_leaves=20,
)


def upper(text):
    return re.sub(r"</?g\d+>|[^<]+", lambda m: m[0] if m[0][0] == "<" else m[0].upper(), text)


def list_kept(html):
    """All that must be there once: tags with their attributes, comments, and text that stays."""
    soup = BeautifulSoup(html, "lxml")
    tags = [(tag.name, *sorted(map(str, tag.attrs.items()))) for tag in soup.find_all(True)]
    comments = [str(node) for node in soup.find_all(string=lambda n: isinstance(n, Comment))]
    return Counter([*tags, *comments, *re.findall("[0-9]+", soup.get_text(" "))])


def write(html, translate):
    (texts,) = write_documents([html], [[translate(text)] for text in read_documents([html])])
    return texts[0]


@settings(max_examples=40)
@given(trees)
def test_where_nothing_moves_all_is_where_it_was(html):
    """But for blanks behind what is changed, which never end an element."""
    source = str(Page(html))
    assert write(html, lambda text: text) == source
    found = write(html, lambda text: text + " x")
    assert "".join(found.replace(" x", "").split()) == "".join(source.replace(" x", "").split())


@settings(max_examples=40)
@given(trees, st.randoms(use_true_random=False))
def test_each_element_stands_there_once_whatever_is_said(html, chance):
    def translate(text):
        parts = re.split(r"(</?g\d+>|\s)", text)
        return "".join(chance.choices(parts, k=len(parts)))

    before, after = list_kept(str(Page(html))), list_kept(write(html, translate))
    assert before == after


@pytest.mark.parametrize(
    ("html", "text"),
    [
        # What has no words goes with the word that it touches, or the next one, or the last one.
        ("A<!-- --> <img> dog", "<g0>A</g0> <g1>dog</g1>"),
        ("A <i><img> dog</i> <input>", "A <g2><g1><g0>dog</g0></g1></g2>"),
        ("dogs<sup>1</sup>, cats.<sup><a>[2]</a></sup>", "<g0>dogs</g0>, cats<g1>.</g1>"),
        # A word that stays.
        ("Press <kbd>X</kbd>, <i><code>y</code></i>s", "Press 0, 1"),
        ("<b>D</b>aily <b>Haus</b>tür", "<g0>D</g0>aily <g1>Haus</g1>tür"),
        ("<b>One. Two.</b> Three.", "<g0>One. Two.</g0> Three."),
        ("A {{ b  | c }} <%= d %> {value, number} &lt;g1&gt;", "A 0 1 2 3"),
    ],
)
def test_an_element_within_a_sentence_is_a_pair_of_tags_or_a_word(html, text):
    (found,) = Markup(html).texts
    marks = iter("0123")
    assert re.sub("[\U00100000-\U0010ffff]", lambda _: next(marks), found) == text


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("<p>one <b>two</b></p><ul><li>three<li>four</ul>", ["one <g0>two</g0>", "three", "four"]),
        (
            "one<br>two<pre>x</pre>three <i>four <div>five</div></i>",
            "one two three four five".split(),
        ),
        ("one <button>two</button>", ["two", "one \U00100000"]),
        ("<select><option value=1>one<option>two</select>", ["one", "two", "\U00100000"]),
        ("<a title=' one  two' href=x></a><link title=x>", ["one two"]),
        ("<input placeholder=one><textarea aria-label=two>x</textarea>", ["one", "two"]),
        ("<p translate=no title=x>x<button class='a notranslate'>x</button>", []),
    ],
)
def test_blocks_and_what_people_read_of_attributes_are_texts_by_themselves(html, texts):
    found = Markup(html).texts
    assert sorted(found) == sorted(text for text in texts if text != "\U00100000")


def test_an_option_sends_what_it_sent():
    found = write("<option>one  two<option value=3>four", upper)
    assert found == '<option value="one two">ONE TWO</option><option value="3">FOUR</option>'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        *((html, html) for html in (
            "a <b>b</b>", "\n<p>a</p>\n", "<!-- a --> b", "", "a &gt; b", "<p <%= a %>>b</p>",
            "<!DOCTYPE html>\n<p>a</p>", '<a hidden="" href="?a=1&amp;copy=2">©</a>',
            "<!doctype html>\n<html><head></head>\n<body>a</body></html>\n",
            "<?xml version='1.0'?><!-- x --><html><body>a</body></html><!-- y -->",
            "<?php echo $a->b ?> c",
        )),
        # No text is lost that is no HTML.
        ("a</body>b</html>c</p>d", "abcd"),
        ("a\0b\ud800\x01", "a\ufffdb\ufffd\x01"),
        (f"&#{'9' * 5000};&#x100000;<code>x</code>", "\ufffd\U00100000<code>x</code>"),
        ("a < b <c", "a &lt; b &lt;c"),
        ("<b>a <!-- b", "<b>a &lt;!-- b</b>"),
    ],
)  # fmt: skip
def test_a_part_stays_a_part_and_a_document_a_document(html, expected):
    assert str(Page(html)) == expected


def test_what_is_nested_too_deeply_is_refused():
    assert Markup("<b>" * 100).texts == []
    for depth in (101, 5000):
        with pytest.raises(ValueError, match="more than 100 tags deep"):
            Markup("<b>" * depth)


@pytest.mark.parametrize(
    "html",
    [
        "<", "<%", "{{", "{ a,", "` ", "<a ", '<a b="', "<!--", "<![if ", "</p>", "<p>a",
        "<b>a</b> ", "a<!-- -->", "<code>a</code> ", "m<sup>2</sup>", "&lt;g1&gt;",
        "{{ a | b }} ", "<b>a " * 90 + "</b>" * 90, "<option value=1>a", "\U00100000",
    ],
)  # fmt: skip
def test_much_of_anything_takes_a_time_that_grows_with_it(html):
    """A time that grows with the square of the length would be minutes, or hours."""
    html *= 50_000 // len(html)
    assert list_kept(write(html, upper)) == list_kept(str(Page(html)))


def test_elements_that_the_translation_swaps_swap():
    numbers = list(range(20))
    html = " ".join(f"<b id='{n}'>a{n}</b>" for n in numbers)
    random.Random(1).shuffle(numbers)
    found = write(html, lambda _: " ".join(f"<g{n}>A{n}</g{n}>" for n in numbers))
    assert found == " ".join(f'<b id="{n}">A{n}</b>' for n in numbers)
