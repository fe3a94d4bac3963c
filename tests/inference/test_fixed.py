"""Literals, and pictures within a sentence, are read as names and stay as they are."""

import numpy as np
import pytest
from inference.test_alignment import Copying, codec
from resmlp_mt.text.stand_ins import compare_names

from resmlp_mt import Translator
from resmlp_mt.inference.reader import Reader

FIXED = [
    "setup.py",
    "https://example.org/a?b=c",
    "%(count)s",
    "🐶",
    "✓",
    "🇫🇷",
    "♥",
    "my_name",
]


class Forgetting(Copying):
    """Says what it reads, but nothing of a sentence that has a name."""

    def search(self, sources, options, guides):
        names = codec("en-de").encode_target("D3")
        said = [[] if np.isin(names, source).all() else source[:-1] for source in sources]
        return [[(np.array(tokens, np.int64), 0.0)] for tokens in said]


@pytest.mark.parametrize("word", FIXED)
@pytest.mark.parametrize("sentence", ["We saw a {} in the park.", "I am {}, and you?", "It is {}!"])
def test_they_are_named_and_come_back(word, sentence):
    text = sentence.format(word)
    translator = Translator(Copying(), codec("en-de"))
    (segment,) = translator.split(text)
    assert segment.named.read == sentence.format("D3") and segment.read == text
    found = next(translator.translate_nbest(text, attention=True))[0]
    assert found.text == text
    attention = found.attention[0]
    assert attention.source_words == attention.target_words
    assert max(attention.source_words) == len(text.split()) - 1


@pytest.mark.parametrize("word", ["{{ user }}", "👍 👍", "a_b c_d", "東京 ⭐"])
def test_words_are_counted_as_in_the_text_where_several_are_named(word):
    text = f"Hello {word} in **red** there."
    translator = Translator(Copying(), codec("en-de"))
    assert translator.translate(text) == text
    found = next(translator.translate_nbest(text, attention=True))[0]
    (attention,) = found.attention
    assert set(attention.source_words) == set(attention.target_words) == {*range(len(text.split()))}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("We saw 12,500 dogs.", "We saw 12.500 dogs."),
        ("It is $1,250.50, and 37 more.", "It is $1.250,50, and 37 more."),
        ("From **10,000** to 20,000 and 10,000.", "From **10.000** to 20.000 and 10.000."),
        ("WE SAW 12,500 DOGS.", "WE SAW 12.500 DOGS."),
        ("See http://a.de/x=12,500 and 4711000.", "See http://a.de/x=12,500 and 4711000."),
        ("12,500", "12,500"),
    ],
)
def test_long_numbers_are_read_as_short_ones_and_written_as_the_target_does(text, said):
    translator = Translator(Copying(), codec("en-de"))
    assert translator.translate(text) == said
    assert translator.translate(text, recase=False) == text
    (segment,) = translator.split(text)
    names = segment.named.names if segment.named else {}
    numbers = [name for word, name in names.items() if word in said and word[0].isdigit()]
    assert all(name.isdigit() and len(name) == 2 and name not in text for name in numbers)
    assert Translator(Copying(), codec("de-en")).translate(said) == text


@pytest.mark.parametrize("word", ["{{ name | upper }}", "{n, number}", "<%= name %>"])
def test_what_templates_compute_is_one_name_unless_words_are_counted(word):
    text = f"There are {word} dogs."
    translator = Translator(Copying(), codec("en-de"))
    (segment,) = translator.split(text)
    assert segment.named.read == "There are D3 dogs."
    assert translator.translate(text) == text
    found = next(translator.translate_nbest(text, attention=True))[0]
    (attention,) = found.attention
    assert found.text == text
    assert max(attention.source_words) == max(attention.target_words) == len(text.split()) - 1
    marked = text.replace("dogs", "**dogs**")
    assert translator.translate(marked) == marked


class Repeating(Copying):
    """Says first each sentence twice, and then once."""

    def search(self, sources, options, guides):
        return [
            [(np.concatenate([source[:-1]] * 2), 0.0), (source[:-1], -0.1)] for source in sources
        ]


def test_a_translation_that_says_a_name_too_often_comes_behind():
    translator = Translator(Repeating(), codec("en-de"))
    assert translator.translate("Edit setup.py first.") == "Edit setup.py first."
    assert translator.translate("Edit this first.").count("first") == 2


class Losing(Copying):
    """Says first what it reads without digits, and then all."""

    def search(self, sources, options, guides):
        symbols = codec("en-de").target_dictionary.symbols
        kept = [[i for i in source[:-1] if "5" not in symbols[i]] for source in sources]
        return [
            [(np.array(some, np.int64), 0.0), (source[:-1], -0.1)]
            for some, source in zip(kept, sources, strict=True)
        ]


def test_a_translation_that_keeps_the_numbers_comes_before_likelier_ones():
    translator = Translator(Losing(), codec("en-de"))
    text = "I paid $5."
    best, likeliest = next(translator.translate_nbest(text, nbest=2))
    assert best.text == text and likeliest.text != text
    assert best.score < likeliest.score


def test_a_term_of_a_glossary_comes_before_the_numbers_within_it():
    translator = Translator(Copying(), codec("en-de"))
    glossary = {"12,500 dogs": "viele Hunde"}
    said = translator.translate("We saw 12,500 dogs and 1,000 cats.", glossary=glossary)
    assert said == "We saw viele Hunde and 1.000 cats."


def test_a_name_that_comes_twice_is_lost_where_it_is_said_once():
    names = {"🐶": "D3", "a_b": "K4"}
    read = "a D3 K4, and a D3"
    for said, found in (
        (read, (0, 0)),
        ("d3 k4 D3", (0, 0)),
        ("D3 K4 D3 D3", (0, 1)),
        ("D3 K4 K4", (1, 1)),
        ("D33 D3", (2, 0)),
    ):
        assert compare_names(said, read, names) == found, said


def test_what_is_nothing_but_literals_stays():
    text = " ".join(f"x_{i}" for i in range(80))
    translator = Translator(Forgetting(), codec("en-de"))
    assert translator.translate(text) == text and not any(
        segment.is_translated for segment in translator.split(text)
    )


@pytest.mark.parametrize("word", FIXED[:3])
def test_a_sentence_whose_name_was_lost_is_read_once_more_as_it_is_typed(word):
    translator = Translator(Forgetting(), codec("en-de"))
    lines = ["Good night.", f"We saw {word} in the park.", "Go."]
    assert translator.translate(lines) == lines


def test_what_the_model_cannot_read_stays_where_its_name_was_lost():
    translator = Translator(Forgetting(), codec("en-de"))
    text = "We saw setup.py in Łódź."
    assert translator.split(text)[0].needs_names and translator.translate(text) == text


def test_arrows_part_what_is_done_one_after_the_other():
    split = Reader(codec("en-de"), 255).split
    assert [part.text for part in split("Open File → Save")] == ["Open File ", "→ ", "Save"]
    assert [part.text for part in split("We saw a 🐶 here")] == ["We saw a 🐶 here"]
    cut = split("We saw a 🐶 here", recase=False)  # where no names are given
    assert [part.text for part in cut] == ["We saw a ", "🐶 ", "here"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"Do not touch it"', ['"', "Do not touch it", '"']),
        ("„Finger weg“ ", ["„", "Finger weg", "“ "]),
        ('"Stop it."', ['"Stop it."']),
        ('"The Times" or "Die Zeit"', ['"The Times" or "Die Zeit"']),
    ],
)
def test_quotes_around_a_sentence_without_a_stop_are_cut_off(text, parts):
    assert [part.text for part in Reader(codec("en-de"), 255).split(text)] == parts


def test_parts_of_a_sentence_get_no_final_stop():
    segments = Reader(codec("en-de"), 255).split("One → two → three\nFour\nFive. Six")
    marked = [segment.text.strip() for segment in segments if segment.is_item]
    assert marked == ["One", "→", "two", "→", "Five."]  # the last has one already
