"""Raised and lowered characters and fractions: what is restored of them, and what is left alone."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.inference.translator import Translator
from resmlp_mt.text.superscripts import restore_superscripts

MARKED = "²³¹½¾⅓⁰⁷ⁿ₀₂ₓ™ªº"


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("It has 80 m².", "Es hat 80 m2.", "Es hat 80 m²."),
        ("10² and 2½ cups", "102 und 21⁄2 Tassen", "10² und 2½ Tassen"),
        ("H₂O", "Das H2O-Molekül", "Das H₂O-Molekül"),
        ("A volume of 3 m³", "3 M3", "3 m³"),
        ("m2 and m²", "m2 und m2", "m2 und m²"),
        ("An m².", "m2 oder m2", "m2 oder m2"),
        ("An m².", "Ein Meter", "Ein Meter"),
        ("10² is 100", "102 ist 1020", "10² ist 1020"),
        ("m²", "m²", "m²"),
        ("room 12", "Raum 1⁄2", "Raum 1⁄2"),
    ],
)
def test_a_word_is_restored_where_its_plain_form_is_as_often(source, translation, expected):
    assert restore_superscripts(translation, source) == expected


@given(st.text(alphabet=f"aM1 2.-\n{MARKED}"))
def test_all_of_a_text_is_restored_from_its_plain_form(text):
    assert restore_superscripts(unicodedata.normalize("NFKC", text), text) == text


@given(st.text(), st.text())
def test_no_more_changes_than_the_form_of_characters(source, translation):
    restored = restore_superscripts(translation, source)
    plain = [unicodedata.normalize("NFKC", text).lower() for text in (restored, translation)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("en-de", "The house has 80 m² of land."),
        ("en-de", "CO₂ is a gas."),
        ("de-en", "Wir brauchen 2½ Tassen Zucker."),
        ("de-en", "DIE WOHNUNG HAT 80 M²."),
    ],
)
def test_what_ships_keeps_them(model, text):
    (word,) = (word for word in text.split() if any(c in MARKED for c in word))
    (best,) = Translator.from_pretrained(model, threads=1).translate([text])
    assert word.strip(".") in best
