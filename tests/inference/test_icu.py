"""Messages of ICU, and characters that are spelled out, are translated as whole sentences."""

import numpy as np
import pytest
from inference.test_alignment import Copying, codec

from resmlp_mt import Translator
from resmlp_mt.inference.guides import Guide

MESSAGES = [
    "{n, plural, one {# dog} other {# dogs}}",
    "Good day. You have {n, plural, =0 {no dogs} one {# dog} other {# dogs}}. Good night.",
    "- {n, plural, one {# dog} other {# dogs}}: {sex, select, a {his} other {their}} name\nThe end",
    "  {n, plural,\n  one {# dog. It sleeps.}\n  other {# dogs. They sleep.}\n}  ",
    "{n, plural, one {It''s **one** &amp; only} other {We saw # in setup.py}}",
    "Salt &amp; pepper. It is 5&nbsp;kg &copy; us.",
    "Click &quot;Save&quot; <b>now</b>, or don\\'t.",
]


@pytest.mark.parametrize("text", MESSAGES)
@pytest.mark.parametrize("languages", ["en-de", "de-en"])
def test_what_is_said_again_is_the_text(text, languages):
    translator = Translator(Copying(), codec(languages))
    assert "".join(segment.text for segment in translator.split(text)) == text
    found = next(translator.translate_nbest(text, nbest=1))[0].text
    # Where a choice comes after another one, it stands in the cases of that one.
    if text.count(", select") + text.count(", plural") < 2:
        assert found == text
    assert found.count("{") == found.count("}") and "37" not in found


def test_a_word_that_a_case_ends_is_said_as_a_whole():
    translator = Translator(Copying(), codec("en-de"))
    said = translator.translate("File{n, plural, one {} other {s}} gone")
    assert said == "{n, plural, one {File} other {Files}} gone"


@pytest.mark.parametrize(
    "text",
    [
        "Use `{n, plural, one {a dog} other {dogs}}` now.",
        "```\n{n, plural, one {a dog} other {dogs}}\n```",
        '"key": "{n, plural, one {a dog} other {dogs}}",',
        '<a title="{n, plural, one {a dog} other {dogs}}">dog</a>',
        "{n, plural, one {A dog} other {" + "We saw dogs. " * 700 + "}}",
        "&nbsp;",
        "&lt;br&gt;",
    ],
)
def test_what_is_code_or_no_text_stays_and_so_do_long_messages(text):
    translator = Translator(Copying(), codec("en-de"))
    assert not any(segment.composed for segment in translator.split(text))
    assert translator.translate(text) == text


def test_a_number_sign_of_the_text_around_would_become_the_number():
    text = "Issue #5 has {n, plural, =1 {one dog} other {dogs}}."
    assert Translator(Copying(), codec("en-de")).translate(text) == text
    assert "#5 has" not in text[text.index("{") :]


class Apostrophes(Copying):
    """Says what it reads with an apostrophe at its end."""

    def search(self, *arguments):
        mark = codec("en-de").encode_target("dogs'")
        return [[(np.concatenate([b[0][0], mark]), 0.0)] for b in super().search(*arguments)]


def test_an_apostrophe_before_a_brace_would_quote_it():
    translator = Translator(Apostrophes(), codec("en-de"))
    assert translator.translate("We saw a dog").endswith("'")
    text = "{n, plural, one {We saw # dog} other {We saw # dogs}}"
    assert translator.translate(text) == text


def test_what_a_model_does_not_know_is_counted_in_messages_too():
    translator = Translator(Copying(), codec("en-de"))
    for text in ("{n, plural, one {Привет} other {пока}}", "Привет &amp; so"):
        assert next(translator.translate_nbest(text))[0].unknown > 0


def test_where_somebody_asks_for_attention_messages_stay():
    translator = Translator(Copying(), codec("en-de"))
    for text in MESSAGES[:4]:
        assert next(translator.translate_nbest(text, attention=True))[0].text == text


class Losing(Copying):
    """Says what it reads without digits."""

    def search(self, sources, options, guides):
        symbols = codec("en-de").target_dictionary.symbols
        kept = [[i for i in s[:-1] if not any(map(str.isdigit, symbols[i]))] for s in sources]
        return [[(np.array(tokens, np.int64), 0.0)] for tokens in kept]


def test_a_message_stays_where_its_number_was_lost():
    translator = Translator(Losing(), codec("en-de"))
    lines = ["We sleep.", f"We saw {MESSAGES[0]} today.", "Go."]
    assert translator.translate(lines) == lines


def test_terms_of_a_glossary_are_found_in_the_cases():
    translator = Translator(Copying(), codec("en-de"))
    text = "We have {n, plural, one {# dog} other {# cats}}. The dog &amp; the cat"
    said = translator.translate(text, glossary={"dog": "Hund"})
    assert said == text.replace("dog", "Hund")


def test_each_sentence_of_a_message_holds_its_own_terms_where_names_are_lost():
    held, nothing = [], [(np.empty(0, np.int64), 0.0)]

    class SilentUnlessHeld(Copying):
        def search(self, sources, options, guides):
            lengths = [list(map(len, guide.constraints)) for guide in guides or [Guide()] * 9]
            held.extend(filter(None, lengths))
            found = super().search(sources, options, guides)
            return [beams if must else nothing for beams, must in zip(found, lengths, strict=False)]

    terms = {"dog": "Hund", "cats": "blau Hund", "only": "nur"}
    text = "{n, plural, one {It''s a dog} other {Two cats and a dog}}. Salt &amp; a dog. Go."
    Translator(SilentUnlessHeld(), codec("en-de")).translate(text, glossary=terms)
    assert sorted(held) == [[1], [1], [2, 1]]


def test_sampling_gives_the_cases_numbers_of_their_own():
    class Numbered(Copying):
        def search(self, sources, options, guides):
            seen.extend(guide.number for guide in guides)
            return super().search(sources, options, guides)

    seen = []
    Translator(Numbered(), codec("en-de")).translate(MESSAGES[:1] + ["Go."], sampling=True)
    assert len(seen) == len(set(seen)) == 3
