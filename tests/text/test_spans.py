"""Emphasis, links and tags within sentences: what is taken off, and what comes back where."""

import re
from bisect import bisect_right
from itertools import count
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.rules import spans
from resmlp_mt.text.segments import About, Traced
from resmlp_mt.translating.translator import Translator

ABOUT = About(("en", "de"), None)


def take_spans(text):
    """A text without its spans, and these."""
    left, found = spans.read(Traced.of(text), ABOUT)
    return left, found or []


def put_spans(translation, found, weights):
    """A translation with spans, and the last letter of each of its words in there."""
    done = spans.write(Traced.of(translation), found, ABOUT, lambda _: weights)
    ends = [word.end() - 1 for word in re.finditer(r"\S+", translation)]
    return done.text, [done.text[bisect_right(done.places, place) - 1] for place in ends]


def put_back(left, found):
    """The spans of a text around the words that they were around."""
    return put_spans(left.text, found, np.eye(len(left.text.split())))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("This is **very** good.", "This is very good."),
        ("_Yes!_ ~~no~~ ***so*** __So__ it", "Yes! no so So it"),
        ("**a *b* c**, (*d*) and „_e_“", "a b c, (d) and „e“"),
        ("the [**red** box](https://a.b/c_(d)) here", "the red box here"),
        ("**[a b](u)** or [_c_](v)!", "a b or c!"),
        ('<a href="b" d=\'"\'>link</a>, (<b>x</b>).', "link, (x)."),
        ('Click <b>Save</b>, <a href="x y">read <i>it</i></a>', "Click Save, read it"),
        ("<xliff:g id='a'>He</xliff:g> is <c.red.big>in</c>.", "He is in."),
        ("run `**a** <b>c</b>` **now**", "run `**a** <b>c</b>` now"),
    ],
)
def test_marks_are_taken_off_and_put_back_around_the_same_words(text, plain):
    left, found = take_spans(text)
    letters = [word[-1] for word in plain.split()]
    assert left.text == plain and found and put_back(left, found) == (text, letters)
    assert [text[left.places[w.end() - 1]] for w in re.finditer(r"\S+", plain)] == letters


NONE = [
    "2 * 3 * 4 and 5*6*7", "AT&T", "_open", "Mod_lisp runs", "{a}b{/c}", "f(*args, **kwargs)",
    "snake_case_name, __init__.py, __main__ and __a_b__ of /_a_/", "<i>a</b>", "User_name",
    "10 m<sup>2</sup>, H<sub>2</sub>O and <b>a</b>b", "**never closed, and *neither",
    "house[1](a.b), f[i](x), List<Foo>bar</Foo> and <a>b</a><c>d</c>e", "a [1] (see below), and ](",
    "all (*.*) of _ _ and * x*", "1 < 2 and 3 > 2 <br> or <a> b </a>",
    r"no \*mark\*, \[a](b), \<b>c</b> and not**here**either",
]  # fmt: skip


@given(st.sampled_from(NONE) | st.text(alphabet="ab *_~.,\n"))
def test_what_is_no_mark_stays_and_marks_come_back_as_they_were(text):
    left, found = take_spans(text)
    assert put_back(left, found)[0] == text
    assert text not in NONE or (left.text == text and not found)


WORDS = st.sampled_from(["a", "b.", "»c", "d»!"])
NESTED = st.lists(st.recursive(WORDS, lambda part: st.lists(part, min_size=1, max_size=3)))
PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)))


def weigh(pairs, targets, sources):
    """Weights in which each pair, of a word of the source and one of the translation, is one."""
    weights = np.zeros((targets, sources))
    for source, target in pairs:
        if target < targets and source < sources:
            weights[target, source] = 1
    return weights


def tag(parts, numbers):
    """A text of words, and of parts within tags, each of another name."""
    return " ".join(
        part if isinstance(part, str) else f"<t{(n := next(numbers))}>{tag(part, numbers)}</t{n}>"
        for part in parts
    )


@given(st.text(alphabet="ab .»“\n"), NESTED, PAIRS)
def test_a_translation_gets_each_span_once_and_loses_nothing(translation, parts, pairs):
    words = translation.split()
    left, found = take_spans(tag(parts, count()))
    weights = weigh(pairs, len(words), len(left.text.split()))
    written, letters = put_spans(translation, found, weights)
    assert re.sub(r"</?t\d+>", "", written) == translation
    assert letters == [word[-1] for word in words]
    assert all(written.count(span.open) == bool(words) for span in found)
    ElementTree.fromstring(f"<x>{written}</x>")  # else it fails: well nested


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        # Words change their places.
        ("a **b** c.", "c, b a.", [(1, 1), (2, 0), (0, 2)], "c, **b** a."),
        # Punctuation stays out where it was out, and in where it was in.
        ("a **b** c.", "x »b«, c.", [(1, 1)], "x »**b**«, c."),
        # Several words, one of another between them.
        ("**a b**", "x y z", [(0, 0), (1, 2), (1, 1)], "**x y z**"),
        ("**a b** c", "x y z v w", [(0, 0), (2, 1), (2, 2), (1, 3), (1, 4)], "x y z **v w**"),
        # A word without a place goes beside its neighbour's.
        ("a **b** c", "x y z", [(0, 0), (2, 2)], "**x** y z"),
        # Two spans share no word; the one within another stays there.
        ("**a** _b_", "ab x", [(0, 0), (1, 0)], "**ab** _x_"),
        ("[**a** b](u)", "x y z", [(0, 2), (1, 0)], "[x y **z**](u)"),
        # The blank before a closing quote is not of the word.
        ("«**a**» b", "«x » y", [(0, 0), (0, 1)], "«**x** » y"),
    ],
)
def test_they_go_with_the_words_that_come_from_theirs(text, translation, pairs, expected):
    left, found = take_spans(text)
    weights = weigh(pairs, len(translation.split()), len(left.text.split()))
    assert put_spans(translation, found, weights)[0] == expected


def test_a_word_that_looks_around_is_of_no_span():
    weights = np.array([[0.9, 0.1], [0.45, 0.55], [0.2, 0.7]])
    _, found = take_spans("Open **Settings**")
    assert put_spans("Öffnen Sie Optionen", found, weights)[0] == "Öffnen Sie **Optionen**"


NAMES = [f"t{i}" for i in range(3000)]
LONG = [mark * 200 for mark in ("**a", "*a **b ", "_a_ ", "[a](", "<b>a</b>", "![a](b) ")]
LONG += ["**a" + 10**5 * " " + "b** c", '<a "' * 4000, "`" + 10**5 * " " + "a"]
LONG += ["".join([f"<{name}>" for name in NAMES] + ["x"] + [f"</{n}>" for n in NAMES[::-1]])]


@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_no_pattern_goes_over_a_text_again_and_again_or_deeper_than_the_stack(text):
    left, found = take_spans(text)
    assert sorted(put_back(left, found)[0]) == sorted(text)


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("en-de", threads=1)


def test_what_ships_puts_them_around_the_right_words(translator):
    for text, expected in (
        ("The **red** house is _old_.", "Das **rote** Haus ist _alt_."),
        ("THE <em>RED</em> HOUSE IS OLD.", "DAS <em>ROTE</em> HAUS IST ALT."),
    ):
        assert translator.translate(text) == expected
        assert translator.translate(take_spans(text)[0].text) == take_spans(expected)[0].text
