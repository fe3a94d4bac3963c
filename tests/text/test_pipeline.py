"""Parts taken off a text come back, whatever a model makes of the rest."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.card import Card
from resmlp_mt.text.pipeline import Pipeline
from resmlp_mt.text.rules import capitals, digits, numbers, stops
from resmlp_mt.text.segments import About, Traced

LONGEST = 60
KEPT = [
    "4711", "12,500", "8.15", "1:00", "12 000 000", "DE89 3704 0044 0532 0130 00", "+49 30 123456",
    "978-3-16-148410-0", "2026-11-29", "KB5034441", "us-east-1", "node-18-alpine", "v1.2.3", "mp3",
    "A4", "m²", "10³", "my_name", "getName()", "setup.py", "https://a.b/c?d=e,f", "x@y.z", "~/a/b",
    "--size", "{{ name | upper }}", "{% if new %}", "<%= a b %>", "{n, plural, one {a} other {b}}",
    "%(count)s", "${name}", "`git commit -m`", "&amp;", "🐶", "✓", "東京", "Łódź",
    "rgb(255,128,100)", "(120,450)", "x=100,200", "web-db2",
]  # fmt: skip
# What a model may write otherwise, as far as the digits stand.
LEFT = ["mp3", "A4", "1:00", "8.15", "12,500", "rgb(255,128,100)", "x=100,200"]
WORDS = ["dog", "Dogs", "is", "THE", "**very**", "[a b](u)", "<b>x</b>", "naïve", "-", "—", "(so)"]
ENDS = ["", ".", "!", ",", ":", "…", '"']
texts = st.lists(
    st.tuples(st.sampled_from(KEPT + WORDS), st.sampled_from(ENDS)).map("".join), max_size=9
).map(" ".join)


class Latin:
    """Knows ASCII and some letters more, and has a few symbols."""

    card = Card(split_sentences=True)

    def __init__(self, source="en", target="en"):
        self.source_language, self.target_language = source, target

    def split(self, text):
        return re.findall(r"<2de>|>>deu<<|\[x\]|__de__|[^<>\s]+|[<>]", text)

    def knows(self, character):
        return character.isascii() or character in "ï“„…—✓"

    def knows_script(self, letter):
        return letter < "\u0250"


def pipeline(source="en", target="en"):
    return Pipeline(Latin(source, target), LONGEST)


def split(whole, text, tries=0):
    """Its segments, read as after so many translations that lost something."""
    for segment in whole.split(text):
        again = whole.read(segment.text, replace(segment.about, tries=tries), segment.rules)
        yield again if tries and segment.rules else segment


def about(source="en", target="en", **known):
    return About((source, target), Latin(), **known)


def weigh(said, segment):
    """The weights of a model that looks at the word of the same number."""
    return np.eye(len(said.split()), len(segment.read.text.split()))


@given(texts, st.integers(0, 2))
def test_what_is_read_and_said_as_it_is_comes_back(text, tries):
    whole = pipeline()
    segments = list(split(whole, text, tries))
    assert "".join(segment.text for segment in segments) == (text if text.split() else "")
    for segment in segments:
        said, places = segment.read.text, list(segment.read.places)
        assert len(places) == len(said) and places == sorted(places)
        done = whole.write(segment, said, lambda s=segment, t=said: weigh(t, s))
        words = done.match_words(Traced.of(said)) if said.strip() else []
        assert words == sorted(words)
        expected = segment.text.strip()
        if any(rule is capitals for rule, _, _ in segment.memos):
            assert done.text.lower() == expected.lower()
        else:
            assert done.text == expected


@given(texts, st.integers(0, 2), st.randoms(use_true_random=False))
def test_a_translation_that_is_taken_has_all_that_is_kept(text, tries, drawn):
    """Of a model that says some words twice, some not at all, and some otherwise."""
    whole = pipeline()
    for segment in split(whole, text, tries):
        said = []
        for word in segment.read.text.split():
            changed = re.sub(r"\d", lambda _: str(drawn.randrange(10)), word)
            said += drawn.choice([[word]] * 6 + [[word, word], [], [changed], [word.upper()]])
        done = whole.write(segment, " ".join(said), lambda s=segment, t=said: weigh(" ".join(t), s))
        if done is None or not segment.is_translated:
            continue
        runs = Counter(re.findall(r"\d+", re.sub(r"\b0(?=\d:)|(?<=\d):00\b", "", segment.text)))
        found = Counter(re.findall(r"\d+", re.sub(r"\b0(?=\d:)|(?<=\d):00\b", "", done.text)))
        assert not runs - found
        for word in KEPT:
            if word in segment.text and word not in LEFT:
                assert word in done.text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("- Keep it 😀", "Keep it"),
        ('"Do not touch it"', "Do not touch it"),
        ("DO NOT USE THE iPHONE", "Do not use the iPHONE"),
        ("New Rules For All Members", "New rules for all members"),
        ("We saw **setup.py** and 東京.", "We saw D3 and G3."),
        ("Account DE89 3704 0044 0532 0130 00.", "Account D3."),
        ("We saw 12,500 dogs.", "We saw 43 dogs."),
        ("We saw 5 dogs.", "We saw 5 dogs."),
    ],
)
def test_a_model_reads_words(text, read):
    (segment,) = pipeline().split(text)
    assert segment.read.text == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<2de> A dog. Two.", ["<2de> A dog.", "<2de> Two."]),
        (">>deu<< [x] A dog. Two.", [">>deu<< [x] A dog.", ">>deu<< [x] Two."]),
        ("__de__ A dog.\nTwo.", ["__de__ A dog.", "__de__ Two."]),
        ("<b>A</b> dog.", ["A dog."]),
    ],
)
def test_each_part_begins_with_the_symbols_of_its_text(text, read):
    segments = pipeline().split(text)
    assert "".join(segment.text for segment in segments) == text
    assert [segment.read.text for segment in segments] == read


@given(st.integers(0, 23), st.integers(0, 59))
def test_times_of_day_are_kept_in_12_hours_and_in_24(hour, minute):
    half = f"{hour % 12 or 12}:{minute:02} {'ap'[hour > 11]}.m."
    forms = [f"at {half}", f"um {hour}:{minute:02} Uhr", f"um {hour}.{minute:02} Uhr"]
    for source in forms:
        _, memo = digits.read(Traced.of(source), about())
        for said in forms:
            assert digits.write(Traced.of(said), memo, about(), None)
        for other in (f"um {(hour + 12) % 24}:{minute:02} Uhr", f"{half} {hour}:{minute:02} Uhr"):
            assert not digits.write(Traced.of(other), memo, about(), None)


LISTS = (
    "rgb(255,128,100) (120,450) x=100,200 --size_640,480 f(1,000) 1,000_*_2,000 /a/1,000 ?a=1,000&b"
    " [1,000] 192.168.100.200 1,23,456 #12,500 a12,500"
)


@pytest.mark.parametrize(
    ("source", "target", "text", "said"),
    [
        ("en", "de", "It has 12,500.5 m².", "It has 12.500,5 m²."),
        ("de", "en", "Es sind 12.500,50 €, also 1.000.", "Es sind 12,500.50 €, also 1,000."),
        ("en", "fr", "About 1,000,000 people.", "About 1\u202f000\u202f000 people."),
        ("en", "de", "It weighs 1.500 kg.", "It weighs 1,500 kg."),
        *(("en", "de", *[text.replace("_", " ")] * 2) for text in LISTS.split()),
    ],
)
def test_long_numbers_are_written_as_the_target_language_does_and_a_list_is_none(
    source, target, text, said
):
    assert numbers.rewrite(text, about(source, target)) == said


@pytest.mark.parametrize(
    ("source", "said", "language", "expected"),
    [
        ("two loaves", "Zwei Brote.", "de", "Zwei Brote"),
        ("two loaves.", "Zwei Brote.", "de", "Zwei Brote."),
        ("at two", "at 2 p.m.", "en", "at 2 p.m."),
        ("**two** )", "二つ。", "ja", "二つ"),
    ],
)
def test_an_item_gets_no_stop_that_it_lacks(source, said, language, expected):
    known = about("en", language, is_item=True)
    _, memo = stops.read(Traced.of(source), known)
    done = stops.write(Traced.of(said), memo, known, None).text if memo else said
    assert done == expected
