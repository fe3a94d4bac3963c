"""Emphasis, links and tags within sentences: what is taken off, and what comes back where."""

import re
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.spans import put_spans, take_spans
from resmlp_mt.inference.translator import Translator


def put_back(text, plain):
    """The spans of a plain text around the words that they were around."""
    same = [(number, number) for number in range(len(plain.text.split()))]
    return put_spans(text, plain.spans, same)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("This is **very** good.", "This is very good."),
        ("_Yes!_ ~~no~~ ***so*** __be__ it", "Yes! no so be it"),
        ("**a *b* c**, (*d*) and „_e_“", "a b c, (d) and „e“"),
        ("the [**red** box](https://a.b/c_(d)) here", "the red box here"),
        ('![A cat](a.png "of mine")', "A cat"),
        ("**[a b](u)** or [_c_](v)!", "a b or c!"),
        ('Click <b>Save</b>, <a href="x y">read <i>it</i></a>', "Click Save, read it"),
        ("run `**a** <b>c</b>` **now**", "run `**a** <b>c</b>` now"),
    ],
)
def test_marks_are_taken_off_and_put_back_around_the_same_words(text, plain):
    taken = take_spans(text)
    assert taken.text == plain and taken.spans
    written, places = put_back(plain, taken)
    assert written == text
    ends = [word[-1] for word in re.findall(r"\S+", plain)]
    assert [text[place] for place in taken.places] == ends == [text[place] for place in places]


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 and 5*6*7",
        "f(*args, **kwargs)",
        "snake_case_name and __init__.py of /_a_/",
        "all (*.*) of _ _ and * x*",
        "a [1] (see below), and ](",
        "1 < 2 and 3 > 2 <br> or <a> b </a>",
        r"no \*mark\* and not**here**either",
        "**never closed, and *neither",
        "<i>a</b>",
    ],
)
def test_what_is_no_mark_stays(text):
    taken = take_spans(text)
    assert taken.text == text and not taken.spans
    assert put_back(text, taken)[0] == text


@given(st.text(alphabet="ab *_~.,\n"))
def test_emphasis_comes_back_as_it_was(text):
    taken = take_spans(text)
    assert put_back(taken.text, taken)[0] == text


WORDS = st.sampled_from(["a", "b.", "»c", "d»!"])
NESTED = st.lists(st.recursive(WORDS, lambda part: st.lists(part, min_size=1, max_size=3)))
PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)))


def tag(parts, numbers):
    """A text of words, and of parts within tags, each of another name."""
    return " ".join(
        part if isinstance(part, str) else f"<t{(n := next(numbers))}>{tag(part, numbers)}</t{n}>"
        for part in parts
    )


@given(st.text(alphabet="ab .»“\n"), NESTED, PAIRS)
def test_a_translation_gets_each_span_once_at_most_and_loses_nothing(translation, parts, pairs):
    words = translation.split()
    source = take_spans(tag(parts, count()))
    written, places = put_spans(
        translation, source.spans, [pair for pair in pairs if pair[1] < len(words)]
    )
    assert re.sub(r"</?t\d+>", "", written) == translation
    assert [written[place] for place in places] == [word[-1] for word in words]
    opened = []
    for mark in re.findall(r"</?t\d+>", written):
        if mark[1] == "/":
            assert opened.pop() == mark.replace("/", "")
        else:
            opened.append(mark)
    assert not opened
    assert all(written.count(span.open) <= 1 for span in source.spans)
    assert not words or not source.spans or written != translation


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        # Words change their places.
        ("a **b** c.", "c, b a.", [(1, 1), (2, 0), (0, 2)], "c, **b** a."),
        # Punctuation stays out where it was out, and in where it was in.
        ("a **b** c.", "x »b«, c.", [(1, 1)], "x »**b**«, c."),
        ("a **b!** c.", "x b! c.", [(1, 1)], "x **b!** c."),
        # Several words, one of another between them.
        ("**a b**", "x y z", [(0, 0), (1, 2), (1, 1)], "**x y z**"),
        ("**a b** c", "x y z v w", [(0, 0), (2, 1), (2, 2), (1, 3), (1, 4)], "x y z **v w**"),
        # A word without a place goes beside its neighbour's.
        ("a **b** c", "x y z", [(0, 0), (2, 2)], "**x** y z"),
        # Two spans share no word; the one within another stays there.
        ("**a** _b_", "ab x", [(0, 0), (1, 0)], "**ab** _x_"),
        ("[**a** b](u)", "x y z", [(0, 2), (1, 0)], "[x y **z**](u)"),
    ],
)
def test_they_go_with_the_words_that_come_from_theirs(text, translation, pairs, expected):
    assert put_spans(translation, take_spans(text).spans, pairs)[0] == expected


@pytest.mark.parametrize(
    "mark", ["**a", "*a **b ", "_a_ ", "[a](", "[", "<b>", "<b>a</b>", "**a** ", "![a](b) ", "`"]
)
def test_very_many_marks_take_no_time(mark):
    text = mark * 500  # of a sentence that fits a model
    taken = take_spans(text)
    assert sorted(put_back(taken.text, taken)[0]) == sorted(text)


def test_nesting_without_end_takes_no_stack():
    names = [f"t{i}" for i in range(3000)]
    text = "".join(f"<{name}>" for name in names) + "x"
    text += "".join(f"</{name}>" for name in reversed(names))
    assert "x" in take_spans(text).text


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        ("en-de", "The **red** house is _old_.", "Das **rote** Haus ist _alt_."),
        ("en-de", "The <b>red</b> house is old.", "Das <b>rote</b> Haus ist alt."),
        ("en-de", "THE **RED** HOUSE IS OLD.", "DAS **ROTE** HAUS IST ALT."),
        ("de-en", "Das [rote](a.html) Haus ist alt.", "The [red](a.html) house is old."),
    ],
)
def test_what_ships_puts_them_around_the_right_words(model, text, expected):
    translator = Translator.from_pretrained(model, threads=1)
    assert translator.translate(text) == expected
    (plain,) = translator.translate([take_spans(text).text])
    assert take_spans(expected).text == plain


def test_words_are_counted_in_the_texts_with_their_marks():
    translator = Translator.from_pretrained("en-de", threads=1)
    text = 'Read <a href="a b.html" id=x>the book</a>. Then **come** home.'
    ((best,),) = translator.translate_nbest([text], attention=True)
    ((bare,),) = translator.translate_nbest([take_spans(text).text], attention=True)
    assert take_spans(best.text).text == bare.text and best.score == bare.score
    for found, same in zip(best.attention, bare.attention, strict=True):
        words = {"source_words": same.source_words, "target_words": same.target_words}
        assert replace(found, **words) == same
    (first, second), (one, _) = best.attention, bare.attention
    # The tag takes three words more, before the second.
    assert first.source_words == [word + 3 * (word > 0) for word in one.source_words]
    assert second.source_words[0] == len(text.split()) - 3
    assert second.target_words[-1] == len(best.text.split()) - 1
