"""Words that a model cannot read stay as they are, and the others are translated around them."""

import random
import unicodedata
import warnings
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.test_alignment import Copying, codec
from resmlp_mt.text.stand_ins import find_unreadable, name_words, put_back, put_in

from resmlp_mt import Translator
from resmlp_mt.inference.alignment import align_words
from resmlp_mt.inference.reader import Reader

READABLE = [
    "dog",
    "Dogs",
    "naïve",
    "2026",
    "😀",
    "A1",
    "D3",
    "x-y",
    "(ok)",
    "ﬁne",
    "mañana",
    "Café",
]
UNREADABLE = [
    "Привет",
    "東京ホテル",
    "Łódź",
    "Erdoğan",
    "दिल्ली",
    "สวัสดี",
    "É",
    "μῆνιν",
    "Z\u030cdár",
    "ქართ",
    "《紅樓夢》",
    "مرحبا،",
    "kΩ",
    "東京-based",
    "http://a.b/путь",
]
BEFORE, BEHIND = ["", '"', "(", "„"], ["", ".", '",', "!)", "…", "“"]
BLANKS = [" ", "  ", "\n", "\u3000"]


class Latin:
    """Knows what some languages of Latin letters have, but for é."""

    def knows(self, character):
        return character.isascii() or character in "ïñﬁ…“„"

    def knows_script(self, letter):
        return unicodedata.name(letter).startswith("LATIN")


@st.composite
def texts(draw):
    """A text, and the words in it that cannot be read, in order."""
    words = draw(st.lists(st.sampled_from(READABLE + UNREADABLE), max_size=8))
    text = "".join(
        draw(st.sampled_from(BEFORE)) + word + draw(st.sampled_from(BEHIND)) + draw(blanks)
        for word in words
        for blanks in [st.sampled_from(BLANKS)]
    )
    return text, [word for word in words if word in UNREADABLE]


@given(texts())
def test_names_stand_for_unreadable_words_alone_and_give_them_back(given_text):
    text, unreadable = given_text
    places = find_unreadable(text, Latin())
    assert [text[start:end] for start, end in places] == unreadable
    names = name_words(text, unreadable)
    assert set(names) == set(unreadable) and len(set(names.values())) == len(names)
    read = put_in(text, places, [names[word] for word in unreadable])
    assert not any(word in read for word in unreadable)
    assert not any(name in text for name in names.values())
    assert len(read.split()) == len(text.split())
    for said in (read, read.lower()):
        back = put_back(said, names)
        assert all(back.count(word) == text.count(word) for word in unreadable)
    assert put_back(read, names) == text


def test_names_that_run_out_leave_words_as_they_are():
    words = [f"{chr(a)}{chr(b)}" for a in range(0x430, 0x43A) for b in range(0x430, 0x43A)]
    text = " ".join(words)
    names = name_words(text, words)
    assert list(names) == words[: len(names)] and 0 < len(names) < len(words)


class Deaf(Copying):
    """Says what it reads, but for what is spelled in bytes."""

    def __init__(self, model):
        self.symbols = codec(model).source_dictionary.symbols

    def search(self, sources, options, guides):
        def hears(token):
            return not self.symbols[token].startswith("<0x")

        return [[(source[:-1][[hears(i) for i in source[:-1]]], 0.0)] for source in sources]

    def attend(self, source, targets):
        raise AssertionError("nobody asked")


@settings(max_examples=50)
@given(texts(), st.booleans())
def test_what_a_model_cannot_say_is_in_its_translation(given_text, whole):
    text, unreadable = given_text
    said = Translator(Deaf("en-de"), codec("en-de")).translate(text, split_sentences=not whole)
    for word in unreadable:
        assert said.count(word) == text.count(word)


@settings(max_examples=25)
@given(texts())
def test_unreadable_words_are_aligned_with_themselves(given_text):
    text, unreadable = given_text
    translator = Translator(Copying(), codec("en-de"))
    (found,) = translator.translate_nbest(text, attention=True, split_sentences=False)
    source, target = text.split(), found[0].text.split()
    pairs = align_words(found[0].attention)
    for word in unreadable:
        if sum(word in other for other in source) == 1:
            at = next(i for i, other in enumerate(source) if word in other)
            assert [word in target[t] for s, t in pairs if s == at] == [True]


@cache
def load(model):
    return Translator.from_pretrained(model)


SENTENCES = {
    "en-de": ["The hotel is called {}.", "Do you know {} and Tom?", "I like **{}** very much."],
    "de-en": ["Das Hotel heißt {}.", "Kennst du {} und Tom?", "Ich mag **{}** sehr."],
}


@pytest.mark.parametrize("model", SENTENCES)
def test_the_others_are_translated_as_around_a_short_name(model):
    translator = load(model)
    words = random.Random(1).sample(UNREADABLE, 3)
    for sentence, word in zip(SENTENCES[model], words, strict=True):
        named = translator.translate(sentence.format("D3"))
        assert "D3" in named
        assert translator.translate(sentence.format(word)) == named.replace("D3", word)

    named = translator.translate(SENTENCES[model][0].format("D3").upper())
    said = translator.translate(SENTENCES[model][0].format("Привет").upper())
    assert said == named.replace("D3", "ПРИВЕТ") != named


@pytest.mark.parametrize(
    ("model", "text", "words"),
    [
        ("en-de", "Vitamin D₃ is sold in 東京.", ["D₃", "東京"]),
        # The best beam lacks the name. That of captions knows none, in no beam.
        ("en-de", "My brother's friend Łukasz has two children.", ["Łukasz"]),
        ("multi30k-en-de", "東京 is big.", ["東京"]),
    ],
)
def test_no_word_is_lost_or_stands_for_another(model, text, words):
    said = load(model).translate(text)
    assert all(said.count(word) == 1 for word in words)
    assert not any(character in "3456789" for character in said)


def test_what_is_read_in_small_letters_is_judged_by_these():
    assert "STRAẞE" not in load("de-en").translate("DIE STRAẞE IST SEHR LANG.")


@pytest.mark.parametrize(
    "text", ["Привет, как дела?", "他在哪里?", "Łódź!", "Erdoğan", "Он купил Tesla"]
)
def test_what_is_mostly_unreadable_stays_as_it_is(text):
    translator = load("en-de")
    found = next(translator.translate_nbest(text, nbest=3))
    assert [hypothesis.text for hypothesis in found] == [text] * 3
    assert found[0].unknown == translator.share_unknown(text) > 0
    with warnings.catch_warnings(action="ignore"):
        both = translator.translate(f"Good night. {text}\nGood night.")
        assert both == f"Gute Nacht. {text}\nGute Nacht."


def test_it_is_translated_as_it_is_typed_if_asked():
    with pytest.warns(UserWarning, match="the translation is made up"):
        assert load("en-de").translate("Привет, как дела?", recase=False) != "Привет, как дела?"


def test_words_of_a_glossary_and_a_prefix_are_held_for_what_cannot_be_read():
    translator, text = load("en-de"), "Привет!"
    with warnings.catch_warnings(action="ignore"):
        assert "Hallo" in translator.translate(text, glossary={"Привет": "Hallo"})
        assert translator.translate(text, prefix="Hallo").startswith("Hallo")
        typed = translator.translate("He said Привет to me.", glossary={"Привет": "Hallo"})
        assert "Hallo" in typed and "Привет" not in typed


def test_models_that_cannot_read_the_names_are_given_none(monkeypatch):
    reader = Reader(codec("en-de"), 255)
    line = "He said Привет to me."
    assert reader.split(line)[0].named
    monkeypatch.setattr(type(reader.codec), "knows", lambda self, letter: letter in "Hesaidtom")
    assert Reader(reader.codec, 255).split(line)[0].named is None
