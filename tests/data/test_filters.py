"""Filters of training pairs, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.filters import Limits, Sieve, find_kept
from resmlp_mt.data.reading import Block
from resmlp_mt.errors import UserError

ENGLISH = [
    "Two dogs play in the snow.",
    "where is the station",
    "I DO NOT KNOW WHAT TO SAY.",
    "The package contains the documentation of the library.",
]
GERMAN = [
    "Zwei Hunde spielen im Schnee.",
    "wo ist der bahnhof",
    "ICH WEISS NICHT, WAS ICH SAGEN SOLL.",
    "Das Paket enthält die Dokumentation der Bibliothek.",
]
# Nobody can tell their language.
NEITHER = ["", "42", "12:30 – 14:00", "OK", "Tom", "https://example.org/x", "GIMP 2.10"]


def filtered(pairs, *names, langs=("en", "de")):
    dropped = {}
    sieve = Sieve(names, langs)
    is_kept = sieve.make_choice(dropped)
    lines = [[f"{pair[side]}\n".encode() for pair in pairs] for side in range(2)]
    middle = len(pairs) // 2  # what is a duplicate does not go by blocks
    parts = [slice(middle), slice(middle, None)]
    blocks = [Block(("x.en", "x.de"), 1, (lines[0][part], lines[1][part])) for part in parts]
    findings = [found for block in blocks for found in sieve(block)]
    return [pair for pair, found in zip(pairs, findings, strict=True) if is_kept(found)], dropped


@given(st.lists(st.tuples(st.sampled_from(["a b", "a", "b", ""]), st.sampled_from(["x", "y"]))))
def test_the_first_of_equal_pairs_stays_in_its_place(pairs):
    kept, dropped = filtered(pairs, "remove_duplicates")
    assert kept == list(dict.fromkeys(pairs))
    assert sum(dropped.values()) == len(pairs) - len(kept)


def test_pairs_that_differ_in_blanks_alone_are_equal_and_no_others():
    pairs = [("a b", "c"), (" a  b", "c\t"), ("a", "b c"), ("A b", "c"), ("a b", "d"), ("c", "a b")]
    assert filtered(pairs, "remove_duplicates")[0] == [pairs[0], *pairs[2:]]


def test_sides_that_differ_in_blanks_alone_are_identical_and_no_others():
    pairs = [("GIMP 2", " GIMP  2"), ("hunger", "Hunger"), ("", " "), ("a", "b")]
    assert filtered(pairs, "remove_identical")[0] == pairs[1:]


def test_what_one_side_alone_says_again_and_again_is_found():
    kept = [("no no no", "nein nein nein"), ("a b a b", "x"), ("so so", "so so"), ("aaa", "b")]
    dropped = [("a", "x x  x"), ("a dog", "ein Hund ein Hund ein Hund ."), ("1 2 3 4 " * 3, "x")]
    assert filtered([*kept, *dropped], "remove_repetitive")[0] == kept


def test_sides_in_another_language_are_found_and_doubtful_ones_stay():
    right = [*zip(ENGLISH, GERMAN, strict=True), *((text, text) for text in NEITHER)]
    wrong = [*zip(GERMAN, ENGLISH, strict=True), *((text, text) for text in ENGLISH + GERMAN)]
    pairs = [*wrong, *right]
    assert filtered(pairs, "remove_wrong_language", langs=("en_GB", "de-AT"))[0] == right


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        ("he", "שָׁלוֹם|אֲנִי הוֹלֵךְ הַבַּיְתָה|אני הולך הביתה", "Ich gehe nach Hause.|أنا ذاهب إلى البيت."),
        ("el", "Δὲν ξέρω τί νὰ πῶ.|Δεν ξέρω τι να πω.", "I do not know what to say."),
        (
            "ja",
            "了解|不要|第一次世界大戦|関係者以外立入禁止|国際連合安全保障理事会|一方通行|今日は暑い",
            "我不知道该说什么。|两个人在雪地里玩|他是老師|我是学生|你叫什麼名字？|The dog sleeps.",
        ),
        ("zh", "我不知道该说什么。|印度尼西亚|了解|这是一本书", "私は学生です。|ここはどこですか"),
    ],
)
def test_old_spellings_and_kanji_alone_are_of_their_language(code, right, wrong):
    right, wrong = right.split("|"), wrong.split("|")
    pairs = [("42", line) for line in wrong + right]
    kept, dropped = filtered(pairs, "remove_wrong_language", langs=("en", code))
    assert [line for _, line in kept] == right
    assert dropped == {"a side is in another language": len(wrong)}


def test_a_language_that_cannot_be_told_is_refused():
    with pytest.raises(UserError, match=r"does not know tlh; it knows .*\bde\b"):
        filtered([("a", "b")], "remove_wrong_language", langs=("en", "tlh"))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1))
def test_pairs_are_kept_by_their_lengths(pairs):
    kept, dropped = find_kept(tuple(map(np.array, zip(*pairs, strict=True))), Limits(10, 2.5))
    assert kept.tolist() == [
        min(pair) > 0 and max(pair) <= 10 and max(pair) <= 2.5 * min(pair) for pair in pairs
    ]
    assert sum(dropped.values()) == len(pairs) - sum(kept)
    assert dropped.get("a side is empty", 0) == sum(min(p) == 0 and max(p) <= 10 for p in pairs)
