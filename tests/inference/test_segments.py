import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.subwords import load_subwords
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.inference.segments import find_spaces, split_text
from resmlp_mt.text.sentences import split_sentences


def split(text, longest=100, sentences=True, pieces=str.split, language="en"):
    """The texts of the segments, each with all of its subwords."""
    parts = split_text(text, lambda x: split_sentences(x, language), pieces, longest, sentences)
    assert all(list(part.pieces) == list(pieces(part.text.strip())) for part in parts)
    return [part.text for part in parts]


def test_whole_lines_that_fit_stay_whole_and_others_are_cut_in_sentences():
    text = "One. Two. Three. Four.\nFive. Six."
    assert split(text, 3, sentences=False) == ["One. ", "Two. ", "Three. ", "Four.\n", "Five. Six."]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "One.\n\n  Two. Three.\n", ["One.\n\n", "  Two. ", "Three.\n"]),
        ("en", " \n\x01One.\n \x01 \nTwo.", [" \n\x01One.\n \x01 \n", "Two."]),
        ("en", "\x01 \n", []),
    ],
)
def test_sentences_are_cut_in_every_line(language, text, expected):
    def pieces(part):
        return part.replace("\x01", " ").split()

    assert split(text, language=language, pieces=pieces) == expected


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("A b c. D e! F?", 3, ["A b c. ", "D e! ", "F?"]),
        ("A b, c d; e far. Gee", 3, ["A b, ", "c d; ", "e far. ", "Gee"]),
        ("A b, c d; e far. Gee", 4, ["A b, c d; ", "e far. ", "Gee"]),
        ("A b c d e", 2, ["A b ", "c d ", "e"]),
        ("3.5 is a number. So is 4.", 4, ["3.5 is a number. ", "So is 4."]),
    ],
)
def test_sentences_are_cut_in_clauses_before_words(text, longest, expected):
    assert split(text, longest) == split(text, longest, sentences=False) == expected


def test_clauses_without_spaces_are_cut_at_their_punctuation():
    text = "一二三，四五六，七八九。十。"
    assert split(text, 8, pieces=list) == ["一二三，四五六，", "七八九。", "十。"]


def test_a_blank_parts_translations_behind_what_is_unseen():
    for text in ("One.\u200fTwo.", "One!\u200b\ufeffTwo."):
        segments = split_text(text, lambda x: split_sentences(x, "en"), list, 100, True)
        assert find_spaces(segments, " ") == ["", " ", ""]


def test_words_that_are_too_long_are_cut_between_subwords():
    model = load_subwords(PRETRAINED / "multi30k-en-de" / "spm.model")

    def pieces(part):
        return tuple(model.encode(part, out_type=str))

    text = "https://example.org/" + "snowboarding-motorcyclist-playgrounds/" * 4
    whole = pieces(text)
    first, *others = split(text, 20, pieces=pieces)
    assert pieces(first) == whole[: len(pieces(first))]
    assert len(pieces(first)) > 10 and len(others) < len(whole) / 10


def find_text(text, longest=60):
    """The texts of the segments, and whether there is text in each."""

    def pieces(part):
        return list("".join(part.split()))

    parts = split_text(text, lambda x: split_sentences(x, "en"), pieces, longest, True, str.lower)
    return [(part.text, part.holds_text) for part in parts]


@pytest.mark.parametrize("word", ["a" * 101, "😀a" * 60, "x,y;z." * 40, "Ж" * 5000, "e\u0301" * 99])
def test_what_is_too_long_for_a_word_stays_whole(word):
    assert find_text(f"Look: {word} there. Bye!\n{word}\n漢字{word}漢字") == [
        ("Look: ", True),
        (word, False),
        (" there. ", True),
        ("Bye!\n", True),
        (f"{word}\n", False),
        ("漢字", True),
        (word, False),
        ("漢字", True),
    ]


def test_a_long_word_is_text_where_it_fits_or_has_few_subwords():
    text = f"Look: {'a' * 101} there."
    assert find_text(text, 120) == [(text, True)]
    assert find_text("a" * 100) == [("a" * 60, True), ("a" * 40, True)]


@pytest.mark.parametrize("letter", "漢かカ한ก་ကក")
def test_words_without_blanks_between_them_are_cut_however_many_there_are(letter):
    text = letter * 1000
    parts = split_text(text, lambda line: [line], list, 60, True)
    assert "".join(part.text for part in parts) == text
    assert all(len(part.pieces) <= 60 and not part.code for part in parts) == (letter != "한")


def test_blank_lines_take_no_time():
    text = "a" + "\u2028" * 200_000
    (segment,) = split_text(text, lambda line: [line], str.split, 100, False)
    assert segment.text == text


def test_blanks_without_width_take_no_time():
    text = "a " * 20 + "\u200b" * 100_000
    parts = split(text, 12, pieces=lambda part: part.replace("\u200b", " ").split())
    assert "".join(parts) == text and len(parts) == 2


@given(
    st.text(alphabet="Ab .,;!?\n\u3000\u2028\x85\"'“”。，『』と\u200f१\x01क्।ๆำ།་؟𑁇🇩", max_size=120),
    st.integers(min_value=1, max_value=12),
    st.booleans(),
    st.sampled_from(["en", "de", "fr", "zh", "ja", "kk", "el", "xx"]),
)
def test_nothing_is_lost_and_everything_fits(text, longest, sentences, language):
    def pieces(part):
        return list("".join(part.replace("\x01", " ").split()))

    segments = split(text, longest, sentences, pieces, language)
    assert "".join(segments) == (text if pieces(text) else "")
    assert all(0 < len(pieces(segment)) <= longest for segment in segments)
    blanks = "\x01\x1f \n\u3000\u2028\x85"
    assert not any({"\n", "\u2028"} & set(segment.strip(blanks)) for segment in segments)
