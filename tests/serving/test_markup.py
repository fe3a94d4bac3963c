"""Tags that move with their words, with alignments that are given."""

import warnings

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from resmlp_mt.text.stand_ins import FIRST_MARK

from resmlp_mt.inference.hypotheses import Attention, Hypothesis
from resmlp_mt.serving.html import runs
from resmlp_mt.serving.html.markup import Markup, Translated
from resmlp_mt.serving.html.parser import parse_html
from resmlp_mt.serving.limits import AnswerTooLarge


def translated(text, words, sources):
    """A hypothesis whose words were made from these words of the text."""
    source = [f"▁{word}" for word in text.split()]
    weights = np.zeros((len(words) + 1, len(source) + 1))
    for row, place in enumerate(sources):
        weights[row, place] = 1
    sides = [*source, "</s>"], [*(f"▁{word}" for word in words), "</s>"]
    attention = Attention(*sides, weights, *(list(range(len(side) - 1)) for side in sides))
    return Hypothesis(" ".join(words), 0.0, [attention])


def whole(markup, *hypotheses):
    """These as the translations of its texts, each of which was translated at once."""
    texts = zip(markup.texts, hypotheses, strict=True)
    return [Translated(found.text, [(text, found)]) for text, found in texts]


@pytest.mark.parametrize(
    ("html", "words", "sources", "expected"),
    [
        ("a <b>b</b> c", "C B A", [2, 1, 0], "C <b>B</b> A"),
        ("a <b>b c</b>.", "A C. B", [0, 2, 1], "A <b>C</b>. <b>B</b>"),
        ("a <b>b <i>c</i></b> d", "C B A", [2, 1, 0], "<b><i>C</i> B</b> A"),
        ("<a href='x?a&amp;b'>a b</a>\n c", "A  B C", [0, 1, 2], '<a href="x?a&amp;b">A B</a> C'),
        (" a (<b>b</b>) <br>", "A (B)", [0, 1], " A <b>(B</b>) <br/>"),
        ("a <img src='x'> b", "B A", [1, 0], '<img src="x"/> B A'),
        ("a <code>x y</code> b", "A B", [0, 1], "A <code>x y</code> B"),
        # Within its tag, as far as that is open or begins with the next word.
        ("<b>a <img/></b> b", "A B", [0, 1], "<b>A <img/> </b>B"),
        ("a <b><img/> b</b>", "A B", [0, 1], "A <b><img/> B</b>"),
        ("a <b>b <i>c<wbr></i></b>", "A B C", [0, 1, 2], "A <b>B <i>C<wbr/></i></b>"),
        ("<b>a <img/></b> b", "B A", [1, 0], "<img/> B <b>A</b>"),
        ("a <b>b</b> c", "C A", [2, 0], "<b>C</b> A"),  # its word is gone
        ("<i>a</i> b", "", [], ""),
        ("<em>a</em>", "A.", [0], "<em>A</em>."),
        ("1 &lt; 2 &amp; 3", "2 > 1 & 3", [2, 1, 0, 3, 4], "2 &gt; 1 &amp; 3"),
        ("a <b>b</b>", "A B", [], "A <b>B</b>"),  # without an alignment
        # Words that are tagged in part, as sentences without blanks are.
        ("<b>赤い</b>犬が<a>魚</a>を買う。", "A B C.", [0] * 3, "<b><a>A B C.</a></b>"),
        ("<b>赤</b>い犬と<b>黒</b>", "A B", [0, 0], "<b><b>A B</b></b>"),
        ("a b<b>c</b>de f", "F B A", [2, 1, 0], "F <b>B</b> A"),
    ],
)
def test_tags_move_with_their_words(html, words, sources, expected):
    markup = Markup(html)
    (text,) = markup.texts
    hypothesis = translated(text, words.split(), sources)
    if len(sources) < len(words.split()):
        hypothesis.attention = []
    assert markup.put(whole(markup, hypothesis)) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a <button>b <i>c</i></button> d", "A <button>B <i>C</i></button> D"),
        ("<p><b><button>a</button></b></p>", "<p><b><button>A</button></b></p>"),
        (
            "a <select><option value='1'>b</option><option>c  d</option></select>",
            'A <select><option value="1">B</option><option value="c d">C D</option></select>',
        ),
        ("<label>a <input placeholder='b'></label>", '<label>A <input placeholder="B"/></label>'),
        (
            "<a title='b  c' href='d'>e</a><textarea aria-label='f'>g</textarea>",
            '<a href="d" title="B C">E</a><textarea aria-label="F">g</textarea>',
        ),
        (
            "<img alt='a' src='b'><optgroup label='c'></optgroup><link title='d'>",
            '<img alt="A" src="b"/><optgroup label="C"></optgroup><link title="d"/>',
        ),
        (
            "<p translate='no' title='a'><img alt='b'>c</p><button class='notranslate'>d</button>",
            '<p title="a" translate="no"><img alt="b"/>c</p><button class="notranslate">d</button>',
        ),
    ],
)
def test_what_people_read_is_translated_and_what_they_typed_is_not(html, expected):
    markup = Markup(html)
    assert (
        markup.put(whole(markup, *(Hypothesis(t.upper(), 0.0) for t in markup.texts))) == expected
    )


@pytest.mark.parametrize(
    ("html", "parts", "expected"),
    [
        # Where no blanks part sentences, in the translation, the source or both.
        ("a. <a>b</a>  c.", [("a. ", "甲。", ""), ("b c.", "乙丙。", "")], "甲。<a>乙丙</a>。"),
        ("甲。<a>乙</a>丙。", [("甲。", "A.", " "), ("乙丙。", "B C.", "")], "A. <a>B C</a>."),
        (
            "<a>甲</a>。乙<b>丙。</b>",
            [("甲。", "A。", ""), ("乙丙。", "B。", "")],
            "<a>A</a>。<b>B。</b>",
        ),
        ("甲。<img/>乙。", [("甲。", "A. ", ""), ("乙。", "B.", "")], "A. <img/>B."),
        # A tag around the end of a sentence, and one whose sentence became nothing.
        ("甲<b>。乙</b>丙丁。", [("甲。", "A.", " "), ("乙丙丁。", "B.", "")], "A<b>.</b> B."),
        ("甲。<b>乙。</b>", [("甲。", "A.", " "), ("乙。", "", "")], "<b>A.</b>"),
        ("a a. b <b>c</b>", [("a a. ", "A A.", " "), ("b c", "B", "")], "A A. <b>B</b>"),
    ],
)
def test_a_tag_stays_in_its_sentence(html, parts, expected):
    markup = Markup(html)
    text = "".join(found + gap for _, found, gap in parts)
    made = [(source, Hypothesis(found, 0.0)) for source, found, _ in parts]
    assert markup.texts == ["".join(source for source, *_ in parts)]
    assert markup.put([Translated(text, made)]).strip() == expected


@pytest.mark.parametrize(
    ("html", "texts", "expected"),
    [
        (
            "<ruby>犬<rt>いぬ</rt></ruby>は<ruby>魚<rp>(<rt>さかな</rt>)</rp></ruby>を。",
            ["犬は魚を。"],
            "<ruby><ruby>A</ruby></ruby>",
        ),
        ("a <ruby>b<rp>(</rp><rt>c<img/></rt><rp>)</rp></ruby> d", ["a b d"], "<ruby>A</ruby>"),
        (
            "a <ruby translate='no'>b<rt>c</rt></ruby>",
            [f"a {FIRST_MARK}"],
            'A <ruby translate="no">b<rt>c</rt></ruby>',
        ),
        ("a <ruby><rt>c</rt></ruby>", ["a"], "A <ruby><rt>c</rt></ruby>"),
    ],
)
def test_readings_are_left_out(html, texts, expected):
    markup = Markup(html)
    assert markup.texts == texts
    assert markup.put(whole(markup, Hypothesis("A", 0.0))) == expected


@pytest.mark.parametrize(
    ("html", "words", "sources", "expected"),
    [
        ("a <code>x</code>, b <i><kbd>y</kbd></i>.", "B 1, A 0.", [2, 3, 0, 1],
         "B <i><kbd>y</kbd></i>, A <code>x</code>."),
        ("a <b>b <code>x</code></b> c", "C 0 A", [3, 2, 0], "C <b><code>x</code></b> A"),
        ("a <kbd>x</kbd>+<kbd>y</kbd> b", "B 0+1 A", [2, 1, 0],
         "B <kbd>x</kbd>+<kbd>y</kbd> A"),
        ("a <span class='notranslate'>x y</span> b", "0s A", [1, 0],
         '<span class="notranslate">x y</span>s A'),
        # Where the translation lost one, or has it twice.
        ("a <code>x</code> b <code>y</code>", "B 1", [2, 3],
         "<code>x</code> B <code>y</code>"),
        ("a <code>x</code> b", "A B", [0, 2], "A <code>x</code> B"),
        ("a <code>x</code> b", "0 0 A", [1, 1, 0], "<code>x</code>  A"),
        # Numbers of footnotes stay at their words; other raised ones are of these.
        ("b abc<sup><a>[1]</a></sup>, c.", "ABC, B C.", [1, 0, 2],
         "ABC, B<sup><a>[1]</a></sup> C."),
        ("a abc.<sup>1</sup>", "A ABC.", [0, 1], "A ABC.<sup>1</sup>"),
        ("a m<sup>2</sup>, c.", "A m2, C.", [0, 1, 2], "A <sup>m2</sup>, C."),
        # No words: nobody reads them, or they are parts of one.
        ("a <img/> <script>x</script> b", "A B", [0, 1], "A <img/> <script>x</script> B"),
        ("a<code>x</code>b c", "A C", [0, 1], "A <code>x</code>C"),
    ],
)  # fmt: skip
def test_what_stays_as_it_is_stands_where_the_translation_says(html, words, sources, expected):
    markup = Markup(html)
    (text,) = markup.texts
    marked = [chr(ord(FIRST_MARK) + number) for number in range(2)]
    words = "".join(marked[int(c)] if c in "01" else c for c in words).split()
    assert markup.put(whole(markup, translated(text, words, sources))) == expected


def test_private_characters_of_a_page_are_its_own():
    for html in (f"a {FIRST_MARK} b <code>x</code> c", f"a {FIRST_MARK}b c"):
        markup = Markup(html)
        (text,) = markup.texts
        found = translated(text, text.upper().split(), range(len(text.split())))
        assert FIRST_MARK in markup.put(whole(markup, found))
        assert "".join(text.split()) == "".join(
            BeautifulSoup(html.replace("<code>x</code>", ""), "html.parser").get_text().split()
        )


def test_a_run_may_have_more_atoms_than_there_are_private_characters(monkeypatch):
    monkeypatch.setattr(runs, "_MOST_MARKS", 3)
    markup = Markup("<p>a " + "<kbd>x</kbd>" * 9 + " b</p>")
    assert sum(character >= FIRST_MARK for character in markup.texts[0]) == 3
    found = markup.put(whole(markup, Hypothesis("A B", 0.0)))
    assert found.count("<kbd>x</kbd>") == 9


def test_blocks_are_translated_apart_and_code_is_left():
    html = """<div>one <p>two</p> three</div><script>if (a < b) four()</script>
        <table><tr><td>five</td><td translate="no">six</td></tr></table>seven<pre>
          if a:\n    b()</pre><em>twelve <p translate="no">and</p></em> last
        <p><span class="notranslate">eight</span></p><b>nine<p>ten</p></b><!-- eleven -->"""
    markup = Markup(html)
    assert markup.texts == "one two three five seven twelve last nine ten".split()
    found = markup.put(whole(markup, *(translated(t, [t.upper()], [0]) for t in markup.texts)))
    expected = str(BeautifulSoup(html, "html.parser"))  # it shortens white space
    for text in markup.texts:
        expected = expected.replace(text, text.upper())
    assert found == expected


words = st.lists(st.sampled_from(["a", "b,", "&lt;", "ö"]), min_size=1, max_size=4).map(" ".join)
tags = st.recursive(
    words | st.sampled_from([" <img/> ", "<!--x-->", "<code>x</code>"]),
    lambda inner: st.builds(
        "<{0}>{1}</{0}>".format,
        st.sampled_from(["b", "i", "section", "a", "div"]),
        st.lists(inner, max_size=4).map(" ".join),
    ),
    max_leaves=12,
)


@given(tags, st.randoms())
def test_no_tag_and_no_word_is_lost(html, chance):
    markup = Markup(html)
    hypotheses = []
    for text in markup.texts:
        count = len(text.split())
        order = chance.choices(range(count), k=chance.randint(1, 6))
        hypotheses.append(translated(text, [f"w{i}" for i in order], order))
    before, after = (
        BeautifulSoup(html, "html.parser"),
        BeautifulSoup(markup.put(whole(markup, *hypotheses)), "html.parser"),
    )
    kept = {tag.name for tag in before.find_all() if tag.get_text(strip=True) or not tag.contents}
    assert kept <= {tag.name for tag in after.find_all()}
    for code in (*before.find_all("code"), *after.find_all("code")):
        assert code.get_text() == "x"
        code.decompose()
    assert after.get_text().split() == [w for h in hypotheses for w in h.text.split()]


@given(tags)
def test_where_nothing_moves_all_is_where_it_was(html):
    markup = Markup(html)
    found = markup.put(whole(markup, *(Hypothesis(text, 0.0) for text in markup.texts)))
    assert "".join(found.split()) == "".join(str(BeautifulSoup(html, "html.parser")).split())


@pytest.mark.parametrize(
    ("html", "texts", "expected"),
    [
        ("<p>a<br>b<br/>c</p>", ["a", "b", "c"], "<p>A<br/>B<br/>C</p>"),
        ("<p>a<img></p><p>b<img/></p>", ["a", "b"], "<p>A<img/></p><p>B<img/></p>"),
        ("<p>a<br></br>b</p>", ["a", "b"], "<p>A<br/>B</p>"),
        ("<div/>a", ["a"], "<div></div>A"),
    ],
)
def test_an_empty_tag_holds_nothing_with_or_without_a_slash(html, texts, expected):
    markup = Markup(html)
    assert markup.texts == texts
    assert markup.put(whole(markup, *(translated(t, [t.upper()], [0]) for t in texts))) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<p>a<p>b<p>c",
        "<p>a<ul><li>b<p>c<li>d</ul>e",
        "<ul><li>a<ul><li>b<li>c</ul><li>d</ul>",
        "<dl><dt>a<dd>b<p>c<dt>d<dd>e</dl>",
        "<p>a<br>b <i>c</i><h1>d</h1>e<p>f<hr>g<p>h<table><tr><td>i</table>",
        "<p>a<div>b</div>c<blockquote><p>d</blockquote>",
        "<select><option>a<option>b</select>",
        "<table><tr><th>a<td>b<p>c<tr><td>d<table><tr><td>e</table><td>f</table>",
        "<table><thead><tr><th>a<tbody><tr><td>b<tr><td>c<tfoot><tr><td>d</table>",
        "<ul>" + "<li>a" * 200 + "</ul>",
    ],
)
def test_tags_end_where_others_begin_as_another_parser_has_it(html):
    html = f"<div>{html}</div>"
    theirs = BeautifulSoup(html, "lxml").body.decode_contents()
    assert str(parse_html(html)) == theirs
    assert len(Markup(html).texts) > 1  # and it is not too deep


def test_what_is_not_closed_in_its_order_stays_open():
    """A browser goes on in bold. It does so with what we write, too."""
    assert str(parse_html("<p>a<b>b<p>c</b>d")) == "<p>a<b>b<p>c</p></b>d</p>"


@pytest.mark.parametrize("html", ["<!DOCTYPE html>\n<p>a</p>", "<!DOCTYPE html><p>a</p>"])
def test_a_doctype_gets_no_line_of_its_own(html):
    assert str(Markup(html).soup) == html


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        # By the rules of HTML for a name that has no ; behind it, in an attribute.
        ("?a=1&copy=2&currency=EUR&lt2&region", "?a=1&copy=2&currency=EUR&lt2&region"),
        ("&copy &copy; &copy", "© © ©"),
        ("&notin; &notit; &not;it", "∉ &notit; ¬it"),
        ("&amp;copy=1 &#65; &#x41;&nothing;&", "&copy=1 A A&nothing;&"),
    ],
)
@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_an_address_is_none_with_characters_in_the_place_of_its_fields(typed, read, quote):
    if not quote:
        typed, read = typed.replace(" ", "%20"), read.replace(" ", "%20")
    tag = Markup(f"<a id=x HREF={quote}{typed}{quote} hidden>b</a>").soup.a
    assert tag.attrs == {"id": "x", "href": read, "hidden": ""}


@pytest.mark.parametrize("html", ["http://a.b/c", '<?xml version="1.0"?><p>a</p>'])
def test_the_parser_gives_no_advice(html):
    with warnings.catch_warnings(action="error", category=UserWarning):
        Markup(html)


@pytest.mark.parametrize("html", ["<td>1\xa0234\xa0567</td>", '<p title="12  34">a</p>'])
def test_what_a_translation_leaves_keeps_its_white_space(html):
    markup = Markup(html)
    assert markup.put(whole(markup, *(Hypothesis(text, 0.0) for text in markup.texts))) == html


@pytest.mark.parametrize("tag", ["<a ", '<a b="', "<!--", "<![if "])
def test_tags_that_never_end_are_text_and_take_no_time(tag):
    tail = tag * 30_000  # looking for the end of each would take minutes
    markup = Markup("<p>one</p> two <b>three</b> " + tail)
    one, rest = markup.texts
    assert (one, rest) == ("one", " ".join(f"two three {tail}".split()))
    found = str(markup.soup)
    assert BeautifulSoup(found, "html.parser").get_text().endswith(tail)


@pytest.mark.parametrize("tag", ["<!-- >", "<![CDATA[>", "<![if>"])
def test_markup_with_too_much_that_has_no_end_is_refused(tag):
    Markup("a" + tag * 1000)
    Markup("<!-- --> <![CDATA[ ]]> <![if x]>" * 1001 + tag)
    with pytest.raises(ValueError, match="more than 1,000 <!"):
        Markup("a" + tag * 150_000)


@pytest.mark.parametrize("html", ["a <![foo> b", "<![ ]>"])
def test_markup_that_cannot_be_parsed_is_refused(html):
    with pytest.raises(ValueError, match="does not know"):
        Markup(html)


def test_a_character_of_too_many_digits_is_refused_in_our_words():
    with pytest.raises(ValueError, match="&# with thousands of digits"):
        Markup(f"&#{'9' * 5000};")


@pytest.mark.parametrize("html", ['<p><a id="x">\u200b</a></p>', "<b>\ufeff</b> <i>\x7f</i>"])
def test_text_that_is_not_translated_stays_with_its_tags(html):
    markup = Markup(html)
    assert markup.put([Translated(text, []) for text in markup.texts]) == html


def test_a_tag_that_becomes_many_may_not_take_more_than_there_is_room_for():
    html = f"<b id='{'x' * 90}'>a c e g</b> b d f h"

    def put(room):
        markup = Markup(html)
        words, sources = "A B C D E F G H".split(), [0, 4, 1, 5, 2, 6, 3, 7]
        return markup.put(whole(markup, translated(markup.texts[0], words, sources)), room)

    assert put(400).count("<b ") == 4
    with pytest.raises(AnswerTooLarge):
        put(300)
