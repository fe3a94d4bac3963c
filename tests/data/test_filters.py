"""Filters of training pairs, one by one."""

from itertools import chain, cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.filters import FILTERS, filter_pairs
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
    return list(filter_pairs(pairs, names, langs, dropped)), dropped


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


def test_sides_in_another_language_are_found_and_doubtful_ones_stay():
    right = [*zip(ENGLISH, GERMAN, strict=True), *((text, text) for text in NEITHER)]
    wrong = [*zip(GERMAN, ENGLISH, strict=True), *((text, text) for text in ENGLISH + GERMAN)]
    pairs = [*wrong, *right]
    assert filtered(pairs, "remove_wrong_language", langs=("en_GB", "de-AT"))[0] == right


def test_a_language_that_cannot_be_told_is_refused():
    with pytest.raises(UserError, match=r"does not know tlh; it knows .*\bde\b"):
        filtered([("a", "b")], "remove_wrong_language", langs=("en", "tlh"))


def test_a_pair_is_counted_once_and_text_without_end_is_filtered():
    pairs = chain([("a", "a"), ("a", "a"), ("b", "c")], cycle([("b", "c"), ("c", "b")]))
    dropped = {}
    first = islice(filter_pairs(pairs, FILTERS, ("en", "de"), dropped), 2)
    assert list(first) == [("b", "c"), ("c", "b")]
    assert list(dropped.values()) == [2, 1, 0] and list(dropped) == [
        kind.reason for kind in FILTERS.values()
    ]
