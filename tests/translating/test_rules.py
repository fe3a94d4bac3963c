"""Translations have the words that rules keep, whatever the model says."""

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

UNREADABLE = "Привет 東京ホテル Łódź दिल्ली สวัสดี Z\u030cdár 《紅樓夢》 東京-based".split()
WORDS = ["dog", "Dogs", "naïve", "2026", "A1", "D3", "x-y", "(ok)", "mañana", "Café"]
DOGS, MAN = "Two dogs play in the snow.", "A man rides a bike."


class Saying(Copying):
    """Says of what it reads, token indices, what `say` makes of it, best first."""

    def __init__(self, say):
        self.say, self.beams, self.held = say, [], []

    def search(self, sources, options, guides):
        self.beams.append(options.beam)
        self.held.append(sum(len(guide.constraints) for guide in guides or ()))
        each = [[np.array(tokens, np.int64) for tokens in self.say(x[:-1])] for x in sources]
        return [[(tokens, -0.1 * i) for i, tokens in enumerate(beams)] for beams in each]


def forget(source):
    """Say nothing of a sentence that has a name."""
    names = [codec("en-de").encode_target(name) for name in ("D3", "X9")]
    return [[] if any(np.isin(name, source).all() for name in names) else source]


def lose(source):
    """Say it first without digits, then twice, then once."""
    symbols = codec("en-de").target_dictionary.symbols
    some = [i for i in source if not any(map(str.isdigit, symbols[i]))]
    return some, [*source, *source], source


def hear_no_bytes(source):
    """Leave out what is spelled in bytes."""
    symbols = codec("en-de").source_dictionary.symbols
    return [[i for i in source if not symbols[i].startswith("<0x")]]


@cache
def load(model):
    return Translator.from_pretrained(model)


def saying(say):
    return Translator(Saying(say), codec("en-de"))


def test_a_translation_that_lost_something_is_not_taken():
    assert saying(lose).translate("Edit this first.").count("first") == 1
    text = "Edit setup.py for $5."
    best, other = next(saying(lose).translate_nbest(text, nbest=2))
    assert (best.text, best.lost) == (text, False) and other.score == best.score


def test_what_is_lost_is_read_again_with_a_wider_beam_and_stays_in_the_end():
    translator = saying(forget)
    lines = ["Good night.", "We saw setup.py in Łódź, and 5 dogs.", "Go."]
    with pytest.warns(UserWarning, match="text 2: no translation keeps all .*We saw setup") as told:
        assert translator.translate(lines) == lines
    assert len(told) == 1 and translator.engine.beams[1] == 4 * translator.engine.beams[0]
    assert 1 < len(translator.engine.beams) <= TRIES
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


sayings = st.sampled_from([hear_no_bytes, lose, lambda source: [source]])


@settings(max_examples=30)
@given(texts(), st.booleans(), sayings)
@pytest.mark.filterwarnings("ignore:text 1")
def test_what_a_model_cannot_read_is_in_its_translation(text, whole, say):
    said = saying(say).translate(text, split_sentences=not whole)
    for word in UNREADABLE:
        assert said.count(word) == text.count(word)


@settings(max_examples=25)
@given(st.lists(texts(), max_size=4), sayings)
@pytest.mark.filterwarnings("ignore:text")
def test_many_texts_are_translated_as_each_by_itself(lines, say):
    translator = saying(say)
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
