"""What the rules keep is in translations, whatever the model says.

Most engines here say what they read, or lose some of it.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translating.test_alignment import Copying, codec

from resmlp_mt import Translator
from resmlp_mt.text.pipeline import TRIES
from resmlp_mt.translating.alignment import align_words

KEPT = ["setup.py", "https://a.b/c?d=e", "🐶", "👍 👍", "{{ name | upper }}", "東京 ⭐"]
UNREADABLE = [
    "Привет",
    "東京ホテル",
    "Łódź",
    "दिल्ली",
    "สวัสดี",
    "Z\u030cdár",
    "《紅樓夢》",
    "東京-based",
]
WORDS = ["dog", "Dogs", "naïve", "2026", "A1", "D3", "x-y", "(ok)", "mañana", "Café"]
DOGS, MAN = "Two dogs play in the snow.", "A man rides a bike."


class Forgetting(Copying):
    """Says what it reads, but nothing of a sentence that has a name."""

    def __init__(self):
        self.beams = []

    def search(self, sources, options, guides):
        self.beams.append(options.beam)
        names = [codec("en-de").encode_target(name) for name in ("D3", "X9")]
        said = [
            [] if any(np.isin(name, source).all() for name in names) else source[:-1]
            for source in sources
        ]
        return [[(np.array(tokens, np.int64), 0.0)] for tokens in said]


class Losing(Copying):
    """Says first what it reads without digits, then twice, then once."""

    def search(self, sources, options, guides):
        symbols = codec("en-de").target_dictionary.symbols
        found = []
        for source in sources:
            some = [i for i in source[:-1] if not any(map(str.isdigit, symbols[i]))]
            beams = np.array(some, np.int64), np.concatenate([source[:-1]] * 2), source[:-1]
            found.append([(tokens, -0.1 * i) for i, tokens in enumerate(beams)])
        return found


class Deaf(Copying):
    """Says what it reads, but for what is spelled in bytes."""

    def search(self, sources, options, guides):
        symbols = codec("en-de").source_dictionary.symbols

        def hears(token):
            return not symbols[token].startswith("<0x")

        return [[(source[:-1][[hears(i) for i in source[:-1]]], 0.0)] for source in sources]


@cache
def load(model):
    return Translator.from_pretrained(model)


def copying(engine=Copying, model="en-de"):
    return Translator(engine(), codec(model))


@pytest.mark.parametrize("word", KEPT)
@pytest.mark.parametrize("sentence", ["We saw {} in the park.", "I am {}, **you**?"])
def test_words_are_counted_as_in_the_text_whatever_is_named(word, sentence):
    text = sentence.format(word)
    (found,) = next(copying().translate_nbest(text, attention=True))
    assert found.text == text and copying().translate(text) == text
    (attention,) = found.attention
    assert attention.source_words == attention.target_words
    before = text[: text.index(word)].count(" ")
    named = range(before, before + len(word.split()) - 1)  # counts by its last word
    assert {*range(len(text.split()))} - {*attention.source_words} <= {*named}


def test_a_translation_that_lost_something_is_not_taken():
    assert copying(Losing).translate("Edit this first.").count("first") == 1
    text = "Edit setup.py for $5."
    best, other = next(copying(Losing).translate_nbest(text, nbest=2))
    assert (best.text, best.lost) == (text, False) and other.score == best.score


def test_what_is_lost_is_read_again_with_a_wider_beam_and_stays_in_the_end():
    engine = Forgetting()
    translator = Translator(engine, codec("en-de"))
    lines = ["Good night.", "We saw setup.py in Łódź, and 5 dogs.", "Go."]
    with pytest.warns(UserWarning, match="text 2: no translation keeps all .*We saw setup") as told:
        assert translator.translate(lines) == lines
    assert len(told) == 1 and engine.beams[1] == 4 * engine.beams[0]
    assert 1 < len(engine.beams) <= TRIES
    found = [best[0].lost for best in translator.translate_nbest(lines)]
    assert found == [False, True, False]


@st.composite
def texts(draw):
    """Words that a model knows, and others, with marks around them."""
    before, behind = (
        st.sampled_from(["", '"', "(", "„"]),
        st.sampled_from(["", ".", '",', "!)", "…"]),
    )
    word = st.tuples(before, st.sampled_from(WORDS + UNREADABLE), behind).map("".join)
    return " ".join(draw(st.lists(word, max_size=8)))


engines = st.sampled_from([Deaf, Losing, Copying])


@settings(max_examples=30)
@given(texts(), st.booleans(), engines)
@pytest.mark.filterwarnings("ignore:text 1")
def test_what_a_model_cannot_read_is_in_its_translation(text, whole, engine):
    said = copying(engine).translate(text, split_sentences=not whole)
    for word in UNREADABLE:
        assert said.count(word) == text.count(word)


@settings(max_examples=25)
@given(st.lists(texts(), max_size=4), engines)
@pytest.mark.filterwarnings("ignore:text")
def test_many_texts_are_translated_as_each_by_itself(lines, engine):
    translator = copying(engine)
    found = list(translator.translate_nbest(lines + lines, nbest=2, attention=True))
    alone = [next(translator.translate_nbest(line, nbest=2, attention=True)) for line in lines]
    assert found == alone + alone
    joined = translator.translate("\n".join(lines), split_sentences=True)
    each = translator.translate(lines, split_sentences=True)
    assert joined.split() == " ".join(each).split()


def test_what_is_mostly_unreadable_stays_unless_it_is_typed_or_led():
    translator = load("en-de")
    for text in ("Привет, как дела?", "Он купил Tesla"):
        found = next(translator.translate_nbest(text, nbest=3))
        assert [hypothesis.text for hypothesis in found] == [text] * 3
        assert found[0].unknown == translator.share_unknown(text) > 0
        with pytest.warns(UserWarning, match="the translation is made up"):
            assert translator.translate(text, recase=False) != text
    with warnings.catch_warnings(action="ignore"):
        assert translator.translate("Привет!", glossary={"Привет": "Hallo"}) == "Hallo!"
        assert translator.translate("Привет!", prefix="Hallo").startswith("Hallo")


def test_capitals_are_answered_in_capitals_and_nothing_else_changes():
    translator = load("multi30k-en-de")
    dogs, man = translator.translate([DOGS, MAN])
    assert translator.translate(f"{MAN}  {DOGS.upper()}\n{MAN}") == f"{man}  {dogs.upper()}\n{man}"
    lines = [DOGS, MAN, "A NATO dog.", "BMX", "IBM PC", "", "Ein Hund und NATO"]
    assert translator.translate(lines) == translator.translate(lines, recase=False)
    assert translator.translate(DOGS.upper(), recase=False) not in (dogs, dogs.upper())
    options = dict(split_sentences=False, glossary={"snow": "Firn"})
    whole = translator.translate(f"{DOGS} {MAN}", **options)
    assert translator.translate(f"{DOGS} {MAN}".upper(), **options) == whole.upper()
    assert "FIRN" in whole.upper()


@pytest.mark.parametrize("options", [dict(nbest=3), dict(sampling=True, nbest=3)], ids=str)
def test_every_hypothesis_is_in_capitals_and_aligned_as_before(options):
    (plain,), (raised,) = (
        list(load("multi30k-en-de").translate_nbest(x, attention=True, **options))
        for x in (DOGS, DOGS.upper())
    )
    for one, other in zip(plain, raised, strict=True):
        assert (one.text.upper(), one.score) == (other.text, other.score)
        assert align_words(one.attention) == align_words(other.attention)


def test_lines_with_a_prefix_or_words_to_hold_are_taken_as_typed():
    translator, lines = load("multi30k-en-de"), [DOGS.upper(), DOGS.upper()]
    for led in (dict(prefix=["ZWEI", ""]), dict(words=[["Hund"], []])):
        begun, free = translator.translate(lines, **led)
        typed, _ = translator.translate(lines, **led, recase=False)
        assert begun == typed and free == translator.translate(DOGS).upper()
