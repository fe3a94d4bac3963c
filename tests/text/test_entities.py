"""Characters that are spelled out are read as characters, and spelled again."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.entities import read_spelled, restore_blanks


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Salt &amp; pepper", "Salt & pepper"),
        ("5&nbsp;kg", "5\xa0kg"),
        ("Don&#39;t &lt;b&gt;", "Don't <b>"),
        (r"Can\'t open \"%s\"", 'Can\'t open "%s"'),
        ("<b>a</b> &lt; c &amp; d", "<b>a</b> &lt; c & d"),
        ("&copy; &amp; &hellip;", "© & …"),
    ],
)
def test_they_are_read_and_spelled_again(text, read):
    spelled = read_spelled(text)
    assert spelled.texts == (read,) and spelled.put_together([read]) == text


@pytest.mark.parametrize(
    "text",
    [
        "A & B",
        "AT&T;",
        "&NBSP;",
        "&Amp;",
        "a&shy;b&#10;",
        "© &copy;",
        "a & b &amp; c",
        "&amp;nbsp; &amp;#39;",
        r"C:\\'a'",
        "",
    ],
)
def test_nothing_is_read_where_nobody_could_spell_it_again(text):
    assert read_spelled(text) is None


@given(st.text("ab &<>\"'", min_size=1))
def test_all_characters_of_html_come_back(text):
    escaped = html.escape(text).replace("&#x27;", "&#39;")
    spelled = read_spelled(escaped)
    if escaped == text:
        assert spelled is None
    else:
        assert spelled.texts == (text,) and html.unescape(spelled.put_together([text])) == text


@pytest.mark.parametrize(
    ("translation", "source", "said"),
    [
        ("Es kostet 5 €.", "It is 5\xa0€.", "Es kostet 5\xa0€."),
        ("Es sind 5 kg.", "It is 5\u202fkg", "Es sind 5\u202fkg."),
        ("Es sind 15 kg.", "It is 5\xa0kg", "Es sind 15 kg."),
        ("5 kg und 5 kg", "5\xa0kg and 5 kg", "5 kg und 5 kg"),
        ("5 Tage", "5\xa0days", "5 Tage"),
    ],
)
def test_fixed_blanks_stand_between_the_same_words(translation, source, said):
    assert restore_blanks(translation, source) == said
