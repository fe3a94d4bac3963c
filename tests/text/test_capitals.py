"""Which text is in capitals, how it is read, and how its translation is written."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resmlp_mt.text.rules.capitals import is_in_capitals, read_capitals, write
from resmlp_mt.text.segments import About, Traced

IN_CAPITALS = [
    "WHERE DID YOU LEARN THAT?", "GO AWAY!", "CANCEL", "→ ÄNDERN!", "DON'T FEED THE DOGS",
    "WRITE TO anna@example.org OR SEE https://example.org/a TODAY", "THE 20th CENTURY WAS LONG",
    "DIE STRASSE UND DIE STRAßE", "ΠΟΥ ΕΙΝΑΙ Ο ΣΤΑΘΜΟΣ;", "ГДЕ ВОКЗАЛ?", "ᲡᲐᲓ ᲐᲠᲘᲡ ᲡᲐᲓᲒᲣᲠᲘ",
    "I THINK THAT 你 IS A PRONOUN", "DO NOT USE THE iPHONE OR WiFi", "5 kg OF APPLES",
    "WE MET IN محطة القطار YESTERDAY AT NOON, ALL OF US",
]  # fmt: skip
OTHERS = [
    "", "...", "12 34 56", "STOP!", "NATO", "IBM PC", "COCA-COLA", "U.S.A. U.S.S.R. U.K.",
    "A4 B2B MP3 H2O", "HTTP://EXAMPLE.ORG ANNA@EXAMPLE.ORG", "USA and UK", "NATOとUNESCO とIBM",
    "NATO 和 UNESCO 的 IBM 会议", "ארגון UNESCO של NATO ושל WHO", "منظمة UNESCO و NATO و WHO",
    "你好，世界。 再见 吧", "სად არის სადგური", "The first Letter", "WHERE DID YOU LEARN That?",
    "ᎣᏏᏲ ᏙᎯᏧ ᎣᏍᏓ",  # Cherokee has small letters, but is written without them
]  # fmt: skip


def write_capitals(translation, language):
    return write(Traced.of(translation), True, About(("en", language), None), None).text


@pytest.mark.parametrize("text", IN_CAPITALS)
def test_sentences_in_capitals_are_found_in_all_scripts_that_have_them(text):
    assert is_in_capitals(text) and not is_in_capitals(text.lower())
    assert not is_in_capitals(text + " the")


@pytest.mark.parametrize("text", OTHERS)
def test_acronyms_addresses_and_scripts_without_capitals_are_not(text):
    assert not is_in_capitals(text)
    assert read_capitals(text, "en") is text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WHERE DID YOU LEARN THAT?", "Where did you learn that?"),
        (' ("WHO\tDID IT?")\n', ' ("Who\tdid it?")\n'),
        ("HELLO THERE. HOW ARE YOU?", "Hello there. How are you?"),
        ("I KNOW I'M LATE, AND SO AM I.", "I know I'm late, and so am I."),
        ("MAIL I@EXAMPLE.ORG BY 5PM IN THE U.S.A.", "Mail I@EXAMPLE.ORG by 5PM in the U.S.A."),
        ("İZMİR IS A TOWN", "İZMİR is a town"),
    ],
)
def test_capitals_are_read_as_a_sentence_is_written(text, expected):
    assert read_capitals(text, "en") == expected


def test_letters_have_the_capitals_of_their_language():
    for language in ("tr", "az_AZ", "tur"):
        assert read_capitals("BU IŞIK İÇİN DEĞİL. İYİ", language) == "Bu ışık için değil. İyi"
        assert write_capitals("ılık istanbul", language) == "ILIK İSTANBUL"
    for language in ("ka", "ka-GE"):
        assert write_capitals("სად არის NATO-ს", language) == "სად არის NATO-ს"


@given(st.lists(st.text(), max_size=8).map(" ".join).map(str.upper) | st.text())
@example("ẞ ŉ İ Σ ǅ \u212a ﬁ ABC DEFG")
def test_what_is_read_is_the_same_text_character_by_character(text):
    read = read_capitals(text, "en")
    assert [letter.casefold() for letter in read] == [letter.casefold() for letter in text]
    assert is_in_capitals(text) or read == text


def test_translations_are_written_in_capitals_but_for_what_stays_as_typed():
    said = "die 12-jährige Straße (iPhone, http://a.de/B und x@y.z)"
    expected = "DIE 12-JÄHRIGE STRASSE (iPhone, http://a.de/B UND x@y.z)"
    assert write_capitals(said, "de") == expected and write_capitals("", "de") == ""


@pytest.mark.parametrize("part", ["A", "AB1", "A. ", "@", "A'"])
def test_long_text_takes_no_time(part):
    write_capitals(read_capitals(f"THIS IS {part * 10**5}", "en"), "de")
