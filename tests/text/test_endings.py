"""Final stops of headings and items: what is dropped of a translation, and what is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt import Translator
from resmlp_mt.text.endings import drop_added_stop, is_item

ITEMS = ["- milk", "* milk", "  • milk", "# Milk", "###### Milk", "| milk |", "1. milk", "12) milk"]
SENTENCES = ["Milk", "- 3 of them", "-milk", "#milk", "-", "1.5 litres", "> milk", "2026. A year"]


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ("two loaves", "Zwei Brote.", "de", "Zwei Brote"),
        ('the "old" (house)', "Das „alte“ (Haus).", "de", "Das „alte“ (Haus)"),
        ("how nice", "Wie schön!", "de", "Wie schön"),
        ("zwei Brote", "两个面包。", "zh", "两个面包"),
        ("two loaves.", "Zwei Brote.", "de", "Zwei Brote."),
        ("two loaves:", "Zwei Brote.", "de", "Zwei Brote."),
        ("two loaves", "Zwei Brote", "de", "Zwei Brote"),
        ("bread and more", "Brot ...", "de", "Brot ..."),
        ("bread and so on", "Brot usw.", "de", "Brot usw."),
        ("um fünf Uhr nachmittags", "5 p.m.", "en", "5 p.m."),
        ("what", "Quoi ?", "fr", "Quoi ?"),
        ("it is me", "I. It is me.", "en", "I. It is me"),
    ],
)
def test_a_stop_goes_where_the_source_ends_in_a_word(source, translation, language, expected):
    assert drop_added_stop(translation, source, language) == expected


@given(st.text(alphabet="aB1 .!?…。“\n"), st.text(alphabet="aB1 .!?“\n"))
def test_at_most_the_last_mark_goes_and_never_a_word(text, source):
    left = drop_added_stop(text, source, "de")
    assert left == text or (left == text[:-1] and text[-1] in ".!?。" and left.strip())
    assert len(left.split()) == len(text.split())
    assert drop_added_stop(left, source, "de") == left


def test_lines_are_items_by_what_they_begin_with():
    assert [line for line in [*ITEMS, *SENTENCES] if is_item(line)] == ITEMS


def test_items_of_a_text_get_no_stop_and_its_sentences_keep_theirs():
    translator = Translator.from_pretrained("en-de")
    friends, mother = "two old friends of mine", "Call my mother at home"
    stopped, called = translator.translate([friends, mother])
    assert stopped[-1] == "." != called[-2]  # without a mark before it the model adds one
    text = f"# {mother}\n\n- {friends}\n- {friends}.\n\n{friends}\n"
    expected = f"# {called.rstrip('.!')}\n\n- {stopped[:-1]}\n- {stopped}\n\n{stopped}\n"
    assert translator.translate(text) == expected
    assert translator.translate(f"- {friends}", recase=False) == f"- {stopped}"
    (found,) = translator.translate_nbest([f"- {friends}"], attention=True)
    words = {word for attention in found[0].attention for word in attention.target_words}
    assert words == set(range(len(found[0].text.split())))
