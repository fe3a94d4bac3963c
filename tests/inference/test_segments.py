import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.inference.segments import split_line


def count(text):
    return len(text.split())


def test_a_line_that_fits_stays_whole():
    assert split_line("One. Two. Three.", count, 3) == ["One. Two. Three."]


@pytest.mark.parametrize(
    ("line", "longest", "expected"),
    [
        ("A b c. D e! F?", 3, ["A b c.", "D e!", "F?"]),
        ('He said "stop it." Then he left.', 4, ['He said "stop it."', "Then he left."]),
        ("a b, c d; e f. G", 3, ["a b,", "c d;", "e f.", "G"]),
        ("a b, c d; e f. G", 4, ["a b, c d;", "e f.", "G"]),
        ("a b c d e", 2, ["a b", "c d", "e"]),
        ("3.5 is a number. So is 4.", 4, ["3.5 is a number.", "So is 4."]),
    ],
)
def test_sentences_are_cut_before_clauses_and_clauses_before_words(line, longest, expected):
    assert split_line(line, count, longest) == expected


@given(
    st.text(alphabet="ab .,;!?\n\u3000\"'", max_size=120),
    st.integers(min_value=1, max_value=12),
)
def test_nothing_is_lost_and_everything_fits(line, longest):
    length = lambda text: len(text.replace(" ", ""))  # noqa: E731
    segments = split_line(line, length, longest)
    assert "".join("".join(segments).split()) == "".join(line.split())
    assert all(length(segment) <= longest for segment in segments)
