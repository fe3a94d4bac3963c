"""Texts cut into parts: nothing is lost, and words that belong together stay together."""

import re
from functools import partial

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.subwords import load_subwords
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.text.dividing import divide
from resmlp_mt.text.fitting import Ruler
from resmlp_mt.text.segments import holds_text
from resmlp_mt.text.sentences import split_sentences


def words(text):
    return re.findall(r"\s*\S+", text)


def parts_of(text, longest=100, sentences=True, pieces=words, language="en", **how):
    ruler = Ruler(pieces, longest)
    return divide(text, lambda x: split_sentences(x, language), ruler, sentences, **how)


def split(*text, **how):
    return [part.text for part in parts_of(*text, **how)]


def letters(text):
    return list("".join(text.replace("\x01", " ").split()))


@pytest.mark.parametrize(
    ("text", "longest", "pieces", "expected"),
    [
        ("A b, c d; e far. Gee", 4, words, ["A b, c d; ", "e far. ", "Gee"]),
        ("A b c d e", 2, words, ["A b ", "c d ", "e"]),
        ("3.5 is a number. So is 4.", 4, words, ["3.5 is a number. ", "So is 4."]),
        ("一二三，四五六，七八九。十。", 8, list, ["一二三，四五六，", "七八九。", "十。"]),
    ],
)
def test_sentences_are_cut_in_clauses_before_words(text, longest, pieces, expected):
    assert split(text, longest, pieces=pieces) == expected


def test_words_that_are_too_long_are_cut_between_subwords():
    model = load_subwords(PRETRAINED / "multi30k-en-de" / "spm.model")
    pieces = partial(model.encode, out_type=str)
    text = "https://example.org/" + "snowboarding-motorcyclist-playgrounds/" * 4
    whole, (first, *others) = pieces(text), split(text, 20, pieces=pieces)
    assert pieces(first) == whole[: len(pieces(first))]
    assert len(pieces(first)) > 10 and len(others) < len(whole) / 10


@pytest.mark.parametrize("word", ["a" * 101, "😀a" * 60, "x,y;z." * 40, "Ж" * 5000, "e\u0301" * 99])
def test_what_is_too_long_for_a_word_stays_whole(word):
    text = f"Look: {word} there. Bye!\n{word}\n漢字{word}漢字"
    parts = parts_of(text, 60, pieces=letters)
    assert [part.text for part in parts if part.stays] == [word, f"{word}\n", word]
    others = [part.text for part in parts if not part.stays]
    assert others == ["Look: ", " there. ", "Bye!\n", "漢字", "漢字"]


@pytest.mark.parametrize("letter", "漢かカ한ก་ကក")
def test_words_without_blanks_between_them_are_cut_however_many_there_are(letter):
    text = letter * 1000
    parts = divide(text, lambda line: [line], Ruler(list, 60), True)
    assert "".join(part.text for part in parts) == text
    assert all(len(part.text) <= 60 and not part.stays for part in parts) == (letter != "한")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Mon | Tue | Wed", ["Mon ", "| ", "Tue ", "| ", "Wed"]),
        ("Home » Products » Help", ["Home ", "» ", "Products ", "» ", "Help"]),
        ("red :: green", ["red ", ":: ", "green"]),
        ("Berlin – Bonn – Kiel", ["Berlin ", "– ", "Bonn ", "– ", "Kiel"]),
        ("| Name | Age|", ["| ", "Name ", "| ", "Age", "|"]),
        ("Name:\tJohn\t\tAge: 25\t", ["Name:\t", "John\t\t", "Age: 25\t"]),
        # A dash within a sentence, quotes of French, lines of code and choices.
        ("He came – as I said before – and left.", ["He came – as I said before – and left."]),
        ("Il dit « bonjour » ici", ["Il dit « bonjour » ici"]),
        ("and/or a|b x->y, and `ls | wc` is", None),
        ("**Note:** Keep it", ["**Note:** ", "Keep it"]),
        ("_Name_: Anna", ["_Name_: ", "Anna"]),
        ("**Stop! Go now.** Or not", ["**", "Stop! ", "Go now.", "** ", "Or not"]),
        ("<b>One dog. Two.</b>", ["<b>", "One dog. ", "Two.", "</b>"]),
        ("[*One dog. Two.*](u)", None),
        ("It is {n, plural, one {a. B} other {c! D}}.", None),
        ("Run `do. That! Now` here.", None),
    ],
)
def test_entries_are_apart_and_what_is_one_stays_whole(line, expected):
    assert split(line) == (expected or [line])
    assert split(line, sentences=False) == [line]


def test_what_needs_no_stop_and_what_begins_a_line_is_said():
    parts = parts_of("# One\nTwo. Three\n- Four. Five.\nSix | seven")
    flags = [f"{part.text.strip()} {'is' * part.is_item}{'^' * part.begins}" for part in parts]
    expected = "# One is^, Two. is^, Three , - Four. is^, Five. is, Six is^, | is, seven is"
    assert ", ".join(flags) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True), ("12:30 😀 ---", False), ("- [x] ", False), ("[x] a", True), ("</p>", False),
        ("```bash\n", False), ("~~~ c++", False), ("~~~ a ~~~", True), ("```two words", True),
        ("`code`", True), ("1 < a", True),
    ],
)  # fmt: skip
def test_marks_alone_hold_no_text(text, expected):
    assert holds_text(text) is expected


HOSTILE = "Ab .,;!?\n\u3000\u2028\x85\"'“”。，『』と\u200f१\x01क्།ๆำ།་؟𑁇🇩|»–\t*`{}<>→"


@given(
    st.text(alphabet=HOSTILE, max_size=120),
    st.integers(min_value=1, max_value=12),
    st.booleans(),
    st.sampled_from(["en", "de", "fr", "zh", "ja", "kk", "el", "xx"]),
)
def test_nothing_is_lost_and_everything_fits(text, longest, sentences, language):
    found = parts_of(text, longest, sentences, letters, language)
    assert "".join(part.text for part in found) == (text if letters(text) else "")
    held = [part for part in found if not ("`" in part.text or "{" in part.text)]
    assert all(0 < len(letters(part.text)) <= longest for part in held if not part.stays)
    blanks = "\x01\x1f \t\n\u3000\u2028\x85"
    assert not any({"\n", "\u2028"} & set(part.text.strip(blanks)) for part in held)


@given(st.text(alphabet="aé\u0301 \t->#*_|:•1️⃣👩🏽\u200d💻🇩🇪❤😂→.", min_size=1))
def test_no_cut_is_within_what_readers_take_for_a_character(text):
    ends = {match.end() for match in regex.finditer(r"\X", text)}
    place = 0
    for part in split(text):
        place += len(part)
        assert place in ends or place == len(text)


PARTS = "** [ <b> { {n,plural, ` ``` | – > _a **A. <b>A. a, 😂 ' \" ( \u2028 J. a.b."


@pytest.mark.parametrize("part", [*PARTS.split(" "), " ", "a ", "| ", "“a. ", "。"])
def test_long_text_takes_time_that_grows_with_it(part):
    text = part * 10_000
    assert "".join(split(text)) in (text, "")
