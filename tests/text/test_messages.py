"""Messages of ICU are read as whole sentences, and get their syntax back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.messages import find_messages, read_message

WHOLE = {
    "{n, plural, one {# file} other {# files}}": ("1 file", "37 files"),
    "{n,plural,=0{none}one{one dog}other{# dogs}}": ("none", "one dog", "37 dogs"),
    "{sex, select, male {He} female {She} other {They}} left.": (
        "He left.",
        "She left.",
        "They left.",
    ),
    "File{n, plural, one {} other {s}} gone": ("File gone", "Files gone"),
    "You came {n, selectordinal, one {#st} two {#nd} few {#rd} other {#th}}.": (
        "You came 21st.",
        "You came 22nd.",
        "You came 23rd.",
        "You came 27th.",
    ),
    "{n, plural, offset:1 =0 {{host} is out} other {{host} asks # people}}": (
        "{host} is out",
        "{host} asks 37 people",
    ),
    "{sex, select, a {{n, plural, one {He has # dog} other {He has # dogs}}} other {No}}": (
        "He has 1 dog",
        "He has 37 dogs",
        "No",
    ),
    "{a, plural, one {# dog} other {# dogs}} in {b, plural, one {# box} other {# boxes}}": (
        "1 dog in 37 box",
        "1 dog in 37 boxes",
        "37 dogs in 1 box",
        "37 dogs in 46 boxes",
    ),
    "{n, plural,\n  one {It''s # day}\n  other {It''s # days}\n}": ("It's 1 day", "It's 37 days"),
}


@pytest.mark.parametrize("text", WHOLE)
def test_each_case_is_a_whole_sentence_and_what_is_said_again_gives_the_message(text):
    message = read_message(text)
    assert message.texts == WHOLE[text]
    said = message.put_together(message.texts)
    again = read_message(said)
    assert again.texts == message.texts
    assert said.count("#") >= text.count("#") and said.count("{") >= text.count("{")


def test_what_all_translations_share_stands_around_the_cases():
    message = read_message("You see {n, plural, =0 {no dogs} one {# dog} other {# dogs}}.")
    assert (
        message.put_together(["Du siehst keine Hunde.", "Du siehst 1 Hund.", "Du siehst 37 Hunde."])
        == "Du siehst {n, plural, =0 {keine Hunde} one {# Hund} other {# Hunde}}."
    )
    other = message.put_together(["Keine Hunde.", "Du siehst 1 Hund.", "Du siehst 37 Hunde."])
    assert (
        other == "{n, plural, =0 {Keine Hunde} one {Du siehst # Hund} other {Du siehst # Hunde}}."
    )


def test_nothing_is_taken_out_of_cases_that_had_nothing_around_them():
    text = "{n, plural, one {I see # dog.} other {I see # dogs.}}"
    assert read_message(text).put_together(["Ich sehe 1 Hund.", "Ich sehe 37 Hunde."]) == (
        "{n, plural, one {Ich sehe # Hund.} other {Ich sehe # Hunde.}}"
    )
    same = "I see {n, plural, one {the sheep} other {those sheep}}"
    assert read_message(same).put_together(["Schafe", "Schafe"]) == (
        "{n, plural, one {Schafe} other {Schafe}}"
    )


def test_marks_that_may_be_half_of_a_pair_stay_in_the_cases():
    text = "<b>You</b> see {n, plural, one {# dog} other {# dogs}}"
    said = read_message(text).put_together(["<b>Du siehst 1</b> Hund", "<b>Du siehst 37</b> Hunde"])
    assert said == "{n, plural, one {<b>Du siehst #</b> Hund} other {<b>Du siehst #</b> Hunde}}"


def test_apostrophes_are_doubled_again():
    text = "{n, plural, one {It''s # day} other {Don''t}}"
    assert read_message(text).put_together(["'s ist 1 Tag", "Nicht"]) == (
        "{n, plural, one {''s ist # Tag} other {Nicht}}"
    )


@pytest.mark.parametrize("said", ["ein Hund", "1 Hund und 1 Hund", "11 Hunde", "{1} Hund"])
def test_a_translation_without_the_number_is_none(said):
    message = read_message("{n, plural, one {# dog} other {dogs}}")
    assert message.put_together([said, "Hunde"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {# file}",
        "{n, plural}",
        "{n, plural, }",
        "{n, plural, one {a {b} }",
        "{n, number}",
        "{name}",
        "a {n, plural, one {'{ # file} other {x}}",
    ],
)
def test_what_is_no_whole_message_is_none(text):
    assert find_messages(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, a {x}} " * 30,
        "{n, plural, a {x} b {y}} " * 5,
        "{n, plural, one {a '{' # b} other {c}}",
        "{n, plural, one {# {s, select, a {# dog} other {cat}}} other {x}}",
    ],
)
def test_of_too_many_and_of_hidden_numbers_there_are_no_sentences(text):
    assert find_messages(text) and read_message(text.strip()) is None


PARTS = st.sampled_from(
    "{n, plural, one { other { } # a '{ '' {n} {s, select, x { b} { n".split(" ") + [" "]
)


@given(st.lists(PARTS, max_size=40).map(" ".join))
def test_any_text_is_read_and_said_again_with_the_same_sentences(text):
    for start, end in find_messages(text):
        message = read_message(text[start:end])
        said = message and message.put_together(message.texts)
        if said:
            assert find_messages(said) == [(0, len(said))]


@pytest.mark.parametrize("part", ["{n, plural, a {", "{n,plural,a {'{", "{n, plural, a {x} "])
def test_very_many_take_no_time(part):
    assert find_messages(part * 50_000) == []


def test_messages_are_found_wherever_they_stand_in_a_long_text():
    message = "{n, plural, one {# dog} other {# dogs}}"
    text = f"We saw {message}. " * 1000
    assert [text[slice(*place)] for place in find_messages(text)] == [message] * 1000
