import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.data.sentences import split_sentences
from resmlp_mt.inference.segments import split_text


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
        ("en", "Mr. Lee met Dr. Wu. He left.", ["Mr. Lee met Dr. Wu. ", "He left."]),
        ("en_US", 'He said "stop it."  Then\the left!', ['He said "stop it."  ', "Then\the left!"]),
        ("en", "One.\n\n  Two. Three.\n", ["One.\n\n", "  Two. ", "Three.\n"]),
        ("en", " \n\x01One.\n \x01 \nTwo.", [" \n\x01One.\n \x01 \n", "Two."]),
        ("de", "Er kam z. B. am 3. Mai. Gut!", ["Er kam z. B. am 3. Mai. ", "Gut!"]),
        ("zh-Hans", "你好。我是学生！你呢？", ["你好。", "我是学生！", "你呢？"]),
        ("ja", "はい。元気です。", ["はい。", "元気です。"]),
        ("hi", "नमस्ते। कैसे हो?", ["नमस्ते। ", "कैसे हो?"]),
        ("tlh", "A man. A dog.", ["A man. ", "A dog."]),
        ("en", "\x01 \n", []),
    ],
)
def test_sentences_are_those_of_the_language(language, text, expected):
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


def test_a_sentence_without_end_and_open_quotes_take_no_time():
    for text in ("“a. " * 100_000, "“a " * 100_000, "a" * 300_000, "J. " * 100_000):
        assert "".join(split_sentences(text, "en")) == text


@given(
    st.text(alphabet="Ab .,;!?\n\u3000\u2028\x85\"'“”。，\x01", max_size=120),
    st.integers(min_value=1, max_value=12),
    st.booleans(),
    st.sampled_from(["en", "de", "fr", "zh", "kk", "xx"]),
)
def test_nothing_is_lost_and_everything_fits(text, longest, sentences, language):
    def pieces(part):
        return list("".join(part.replace("\x01", " ").split()))

    segments = split(text, longest, sentences, pieces, language)
    assert "".join(segments) == (text if pieces(text) else "")
    assert all(0 < len(pieces(segment)) <= longest for segment in segments)
    assert not any("\n" in segment.strip("\x01\x1f \n\u3000\u2028\x85") for segment in segments)
