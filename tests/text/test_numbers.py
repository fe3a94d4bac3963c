"""Numbers in groups of digits are found, and written as another language writes them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.numbers import count_lost_numbers, find_grouped

OTHERS = [
    "1,2,3", "12,50", "0,500", "1234,567", "1,2345", "12,500th", "x1,000", "1,000,00", "3.14",
    "192,168,100,200", "1.500", "2019,123", "01,234", "١٢,٥٠٠",
]  # fmt: skip


def write(text, source="en", target="de"):
    for (start, end), said in reversed(list(find_grouped(text, source, target))):
        text = text[:start] + said + text[end:]
    return text


@given(st.integers(1000, 10**11) | st.integers(10**12, 10**18), st.none() | st.integers(0, 999))
def test_python_writes_the_same(number, decimals):
    english = f"{number:,}" + ("" if decimals is None else f".{decimals}")
    german = english.translate(str.maketrans(",.", ".,"))
    for before, behind in (
        ("", ""),
        ("$", "."),
        ("(-", ")"),
        ("", "%,"),
        ("x ", "-y"),
        ("£", " m"),
    ):
        texts = before + english + behind, before + german + behind
        assert write(texts[0]) == texts[1] and write(texts[1], "de", "en_GB") == texts[0]
        assert write(texts[0], "en", "zh-Hans") == texts[0]
        assert list(find_grouped(texts[0], "en", "zh")), "it is found, to stay as it is"


@pytest.mark.parametrize("word", OTHERS)
def test_other_numbers_are_left_alone(word):
    swapped = word.translate(str.maketrans(",.", ".,"))
    assert write(f"So {word} is", "en", "de") == f"So {word} is"
    assert write(f"So {swapped} is", "de", "en") == f"So {swapped} is"


@given(st.text("0123456789.,- x"))
def test_digits_and_all_else_stay(text):
    assert re.sub("[.,]", "_", write(text)) == re.sub("[.,]", "_", text)


@pytest.mark.parametrize("languages", [("en", "fr"), ("hi", "en"), ("source", "target")])
def test_none_are_found_where_a_language_writes_them_otherwise(languages):
    assert write("It has 12,500 parts.", *languages) == "It has 12,500 parts."


@pytest.mark.parametrize(
    ("source", "said", "lost"),
    [
        ("I paid $5.", "Ich zahlte Dollar.", 1),
        ("I paid $5.", "Ich zahlte fünf Dollar.", 1),
        ("It is 7:30 pm.", "Es ist 19:30 Uhr.", 0),
        ("Version 1.6.", "Version 1.", 1),
        ("It is -5 °C (-2).", "Es ist 5 °C (-2).", 1),
        ("From 3-5", "Von 3 bis 5", 0),
        ("None", "1, 2, 3", 0),
    ],
)
def test_lost_numbers_and_signs_are_counted(source, said, lost):
    assert count_lost_numbers(said, source) == lost
