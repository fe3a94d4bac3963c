"""Alignments count the words that the user has, whatever SentencePiece and segments make of them.

The engines here copy what they read, and look at what they copy, or say anything at all.
"""

import random
from functools import cache
from html import escape

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from resmlp_mt import Translator
from resmlp_mt.data.codec import TextCodec
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.serving.html.markup import Markup
from resmlp_mt.translating.alignment import align_words, weigh_words
from resmlp_mt.translating.hypotheses import Attention

# Blanks that SentencePiece makes or drops, letters that it makes several of, sentences without
# blanks between them, and words that are cut into segments.
HOSTILE = [
    "One.Two", "Ja!Nein?", "我有一只狗。它很大。", "赤い犬。", '"One."Two', "(Ja.)Nein", "。", "´",
    "dog´s", "¨", "a¯b", "¸", "ﷺ", "½", "ﬁn", "①②", "…", "e\u0301", "a\u200bb", "\ufeff", "x\xadx",
    "▁", "a▁b", "<unk>", "⁇", "\ufffd", "<0xE5>", "😀", "\x01", "na\x01ive", "ŉ", "STOP IT NOW.",
    "STRAßE", "Donaudampf" * 9, "a.b" * 30, "犬" * 40, "´" * 9, "é" * 30, "**a _b_**", "<b>c</b>",
    '<a href="a b.html" id=x>d e</a>',
]  # fmt: skip
KEPT = ["4711", "8.15", "http://a.b/c-d", "x@y.z", "setup.py", "東京"]
BLANKS = [" ", "  ", "\n", "\u3000", "\xa0", "\t", " \u2028 "]


class Copying:
    """Says what it reads, and looks at it."""

    source_positions = target_positions = 25

    def search(self, sources, options, guides):
        return [[(source[:-1], 0.0)] for source in sources]

    def attend(self, source, targets):
        return [np.eye(len(target) + 1, len(source)) for target in targets]


class Babbling(Copying):
    """Says and looks at anything."""

    def __init__(self, symbols):
        self.symbols = symbols

    def search(self, sources, options, guides):
        drawn = random.Random(int(sum(map(sum, sources))))
        said = [drawn.choices(range(self.symbols), k=drawn.randrange(9)) for _ in sources]
        return [[(np.array(tokens, np.int64), 0.0)] for tokens in said]

    def attend(self, source, targets):
        drawn = np.random.default_rng(len(source))
        return [drawn.random((len(target) + 1, len(source))) for target in targets]


@cache
def codec(model):
    return TextCodec.from_folder(find_checkpoint(model).parent, tuple(model.split("-")[-2:]))


@st.composite
def texts(draw):
    """Hostile words between numbers and addresses that each occur once."""
    kept = draw(st.lists(st.sampled_from(KEPT), unique=True))
    words = draw(st.permutations(draw(st.lists(st.sampled_from(HOSTILE), max_size=6)) + kept))
    return "".join(word + draw(st.sampled_from(BLANKS)) for word in words), kept


def find(translator, text, **options):
    (found,) = translator.translate_nbest(text, attention=True, **options)
    return found[0].text, align_words(found[0].attention)


@pytest.mark.parametrize("model", ["en-de", "multi30k-en-de"])
@settings(max_examples=25)
@given(texts(), st.booleans())
def test_words_that_are_copied_are_aligned_with_themselves(model, given_text, whole):
    text, kept = given_text
    said, pairs = find(Translator(Copying(), codec(model)), text, split_sentences=not whole)
    if model == "en-de":  # the other lacks some letters
        assert set(kept) <= set(said.split())
    for word in set(kept) & set(said.split()):
        places = text.split().index(word), said.split().index(word)
        assert [(s, t) for s, t in pairs if s == places[0] or t == places[1]] == [places]


@pytest.mark.parametrize("model", ["en-de", "multi30k-en-de"])
@settings(max_examples=25)
@given(texts())
def test_no_word_is_counted_that_the_texts_lack(model, given_text):
    engine = Babbling(len(codec(model).target_dictionary))
    said, pairs = find(Translator(engine, codec(model)), given_text[0])
    sources, targets = len(given_text[0].split()), len(said.split())
    assert all(0 <= s < sources and 0 <= t < targets for s, t in pairs)


@settings(max_examples=25)
@given(texts())
def test_tags_stay_around_words_that_are_copied(given_text):
    text, kept = given_text
    html = " ".join(f"<b>{word}</b>" if word in kept else escape(word) for word in text.split())
    markup, translator = Markup(html), Translator(Copying(), codec("en-de"))
    found = markup.put([find(translator, line)[0] for line in markup.texts])
    tags = BeautifulSoup(found, "lxml").find_all("b")
    assert sorted(tag.text for tag in tags) == sorted(kept)


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        ("en-de", "One.Two words. 4711", [(0, 0), (0, 1), (1, 2), (2, 3)]),
        ("en-de", "a´b´ 4711", [(0, 0), (0, 1), (0, 2), (1, 3)]),
        # Between blanks that are a subword alone, what SentencePiece takes for a blank too.
        ("multi30k-en-de", "a \ufeff 8.15", [(0, 0), (2, 1)]),
    ],
)
def test_words_are_those_between_blanks(model, text, expected):
    assert find(Translator(Copying(), codec(model)), text)[1] == expected


def test_words_of_a_prefix_are_counted_in_it():
    translator = Translator(Copying(), codec("multi30k-en-de"))
    line, prefix = "One´s dog.Two dogs. 4711 dogs.", "Ein☃s Hund. Zwei  Hunde. "
    said, pairs = find(translator, line, prefix=prefix)
    assert said == f"{prefix}4711 dogs."
    sources = [{s for s, t in pairs if t in said} for said in ((0, 1), (2, 3), (4,), (5,))]
    assert sources[0] <= {0, 1} and sources[1] <= {1, 2} and sources[2:] == [{3}, {4}]


def test_words_share_what_they_look_at():
    source, target = ["▁a", "▁b", ".", "</s>"], ["▁x", "y", ".", "▁z", "</s>"]
    looks = [[0.6, 0.2, 0, 0.2], [0.4, 0.2, 0.2, 0.2], [0, 0, 0.9, 0.1], [0.2, 0.5, 0.1, 0.2]]
    attention = Attention(source, target, np.array([*looks, [0, 0, 0, 1]]), [0, 1, 1], [0, 0, 0, 1])
    # "xy." looks 1.0 at "a" and 0.6 at "b.", "z" 0.2 and 0.6. The third word has no subword.
    shares = np.array([[1 / 1.6, 0.6 / 1.6], [0.2 / 0.8, 0.6 / 0.8]])
    shares *= shares / shares.sum(0)
    expected = [*(shares / shares.sum(1, keepdims=True)), [0, 0]]
    np.testing.assert_allclose(weigh_words(attention, 3, 2), expected)
    assert weigh_words(attention, 3, 2)[0, 0] == pytest.approx(0.78125)
